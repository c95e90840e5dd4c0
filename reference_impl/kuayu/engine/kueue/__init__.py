"""An external dispatcher of Kueue's MultiKueue: a Kuayu service says to which cluster each workload goes.

MultiKueue copies a workload to the clusters that a *dispatcher* nominates, and the first that admits it gets it.
Kueue's own dispatchers nominate all at once, or three more every five minutes in a fixed order. The one here is
*external* (``multiKueue.dispatcherName`` of Kueue's configuration): it asks a service where a workload belongs, by
where its data are, what devices and transfers cost and how long it would wait, nominates that cluster, and the next
best when that one has not admitted it in the time in which it should have.

- :mod:`.objects` makes what has to be applied: MultiKueue's objects, the dispatcher's permissions and its Deployment.
- :mod:`.workloads` reads what a Workload asks for, where it runs and whether it waits for a cluster.
- :mod:`.adviser` makes a scheduling state of all that, with what the service knows of the domains, and has it decide.
- :mod:`.dispatcher` turns the decisions of a pass into nominations.
- :mod:`.manager` follows the manager cluster's objects by :mod:`.watch`; :mod:`.leader` lets one dispatcher of several
  write.
- :mod:`.controller` is the loop around them, :mod:`.check` says what is missing before it can run.

Fields, names and limits are those of kubernetes-sigs/kueue v0.19.2 (apis/kueue/v1beta2/multikueue_types.go,
workload_types.go, admissioncheck_types.go; apis/config/v1beta2/configuration_types.go; v1beta1 beside them); what an
external dispatcher may do and when stands in keps/693-multikueue/README.md (*MultiKueue Dispatcher API*),
pkg/controller/admissionchecks/multikueue/workload.go and pkg/controller/workloaddispatcher/incrementaldispatcher.go.
"""
