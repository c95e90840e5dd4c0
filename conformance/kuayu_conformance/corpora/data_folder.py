"""Where public originals lie in the data folder (``KUAYU_DATA``, ``--data``): said here, where no library is needed.

Who measured them and how is said where they are read.
"""

JOB_TRACES = {
    "itp": "job_traces/itp.csv.gz",
    "philly": "job_traces/philly.csv.gz",
    "openb": "job_traces/openb_2023.csv.gz",
}
"""Read by ``testbed.scheduling.workload.traces``."""

TRAINING_CURVES = {
    "megatron_curves": "training_curves/megatron_release_curves.csv.gz",
    "megatron_configurations": "training_curves/megatron_release_configs.csv",
    "mlperf_curves": "mlperf_curves/curves.csv.gz",
    "mlperf_runs": "mlperf_curves/runs.csv",
}
"""Read by ``testbed.curves.real``."""

DEMAND_SERIES = {
    "itp-demand": "demand_series/itp_cluster_gpus_demand_1min.csv.gz",
    "earth-running": "demand_series/helios_earth_vc_gpus_running_1min.csv.gz",
    "philly-running": "demand_series/philly_vc_gpus_running_1min.csv.gz",
    "openb-running": "demand_series/openb_2023_running_1min.csv.gz",
}
"""Tables of a value each minute and cluster; read by ``testbed.demand.real``."""
