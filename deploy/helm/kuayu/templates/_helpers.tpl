{{- define "kuayu.name" -}}
{{- $whole := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) }}
{{- $whole | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "kuayu.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kuayu.labels" -}}
{{ include "kuayu.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kuayu.image" -}}
{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
{{- end }}

{{- define "kuayu.tokens" -}}
{{- if and (not .Values.tokens.existingSecret) (not .Values.tokens.lines) }}
{{- fail "the service needs tokens: give tokens.existingSecret or tokens.lines" }}
{{- end }}
{{- default (printf "%s-tokens" (include "kuayu.name" .)) .Values.tokens.existingSecret }}
{{- end }}

{{- define "kuayu.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "kuayu.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
