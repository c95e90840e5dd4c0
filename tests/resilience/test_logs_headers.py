"""Headers of many programs and languages: which one a message has, and which host it names."""

import pytest

from kuayu.resilience.logs.headers import host_of
from kuayu.resilience.logs.recogniser import Follows, Verdict
from kuayu_training.resilience.logs_lines import verdicts

XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
PANIC = "Kernel panic - not syncing: Fatal exception in interrupt"
READ_ONLY = "EXT4-fs (sda1): Remounting filesystem read-only"


def one(text: str) -> Verdict:
    (found,) = verdicts(text)
    return found


NAMED = {
    "journalctl -o short-precise": "Mar 12 04:12:15.123456 n12 kernel: {}",
    "journalctl -o short-iso": "2026-03-12T04:12:15+0800 n12 kernel: {}",
    "journalctl -o short-full": "Thu 2026-03-12 04:12:15 CST n12 kernel: {}",
    "journalctl -o short-full, Chinese": "四 2026-03-12 04:12:15 CST n12 kernel: {}",
    "journalctl -o short-unix": "1741752735.123456 n12 kernel: {}",
    "journalctl -o short-monotonic": "[12345.678901] n12 kernel: {}",
    "journalctl -o short-delta": "[12345.678901 <    0.000001 >] n12 kernel: {}",
    "journalctl, Chinese": "3月 12 04:12:15 n12 kernel: {}",
    "journalctl, Japanese": " 3月 12 04:12:15 n12 kernel: {}",
    "journalctl, Korean": " 3월 12 04:12:15 n12 kernel: {}",
    "journalctl, German": "Mär 12 04:12:15 n12 kernel: {}",
    "journalctl, French": "mars 12 04:12:15 n12 kernel: {}",
    "journalctl, Czech": "kvě 25 19:29:57 n12 kernel: {}",
    "journalctl, Russian": "мар 12 04:12:15 n12 kernel: {}",
    "journalctl of a terminal": "Mar 12 04:12:15 n12 kernel: \x1b[0;1;31m{}\x1b[0m",
    "syslog-ng with the year": "2026 Mar 12 04:12:15 n12 kernel: {}",
    "BusyBox": "Mar 12 04:12:15 n12 kern.crit kernel: [12345.678901] {}",
    "line ends of Windows": "Mar 12 04:12:15 n12 kernel: {}\r",
    "RFC 5424": "<2>1 2026-03-12T04:12:15.123456+08:00 n12 kernel - - - {}",
    "journalctl -o json": (
        '{{"__CURSOR":"s=1;i=2","_HOSTNAME":"n12","_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"{}"}}'
    ),
    "journalctl -o json, in another order": (
        '{{"MESSAGE" : "{}", "SYSLOG_FACILITY" : "0", "SYSLOG_IDENTIFIER" : "kernel", "_TRANSPORT" : "kernel", '
        '"_HOSTNAME" : "n12"}}'
    ),
    "journalctl -o verbose": (
        "Thu 2026-03-12 04:12:15.123456 CST [s=1;i=2]\n    _TRANSPORT=kernel\n    _HOSTNAME=n12\n    MESSAGE={}"
    ),
    "journalctl -o export": "__CURSOR=s=1;i=2\n_TRANSPORT=kernel\n_HOSTNAME=n12\nPRIORITY=2\nMESSAGE={}",
    "journalctl -o json-pretty": '{{\n\t"_HOSTNAME" : "n12",\n\t"_TRANSPORT" : "kernel",\n\t"MESSAGE" : "{}"\n}}',
    "Fluentd, JSON": '{{"host":"n12","ident":"kernel","message":"{}"}}',
    "Fluentd, file": '2026-03-12T04:12:15+08:00\tsystem.kern\t{{"host":"n12","ident":"kernel","message":"{}"}}',
    "Vector": '{{"appname":"kernel","facility":"kern","hostname":"n12","message":"{}"}}',
    "syslog-ng, format-json": '{{"PROGRAM":"kernel","MESSAGE":"{}","HOST":"n12","FACILITY":"kern"}}',
    "rsyslog, jsonmesg": '{{ "msg": "{}", "hostname": "n12", "syslogtag": "kernel:", "programname": "kernel" }}',
}


@pytest.mark.parametrize("header", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("message", [XID, PANIC, READ_ONLY])
def test_the_kernel_s_message_is_told_with_its_host_behind_each_header(header: str, message: str) -> None:
    """Forms by journalctl(1), BusyBox, RFC 5424 and the JSON of Fluentd, Vector, syslog-ng and rsyslog."""
    found = one(header.format(message))
    assert (found.follows, found.node) == (Follows.DRAIN, "n12")


@pytest.mark.parametrize(
    "header",
    [
        "[12345.678901 <    0.000012>] {}",
        "[<    0.000012>] {}",
        "[Thu Mar 12 04:12:15 2026 <    0.000012>] {}",
        "[四 3月 12 04:12:15 2026] {}",
        "[木  3月 12 04:12:15 2026] {}",
        "[Do Mär 12 04:12:15 2026] {}",
        "[jeu. mars 12 04:12:15 2026] {}",
        "\x1b[32m[Thu Mar 12 04:12:15 2026] \x1b[0m\x1b[31m\x1b[1m{}\x1b[0m",
        '{{"log":"[12345.678901] {}\\n","stream":"stdout","time":"2026-03-12T04:12:15.1Z"}}',
    ],
)
@pytest.mark.parametrize("message", [XID, PANIC, READ_ONLY])
def test_the_kernel_s_message_is_told_as_dmesg_prints_it(header: str, message: str) -> None:
    """Forms by util-linux dmesg(1), -d and -T among them, and by Docker of a container that prints them."""
    assert one(header.format(message)).follows is Follows.DRAIN


@pytest.mark.parametrize(
    "line",
    [
        '{{"_TRANSPORT":"stdout","_HOSTNAME":"n12","SYSLOG_IDENTIFIER":"python","MESSAGE":"{}"}}',
        '{{"_TRANSPORT":"syslog","_HOSTNAME":"n12","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"{}"}}',
        '{{"_TRANSPORT":"syslog","_HOSTNAME":"n12","SYSLOG_IDENTIFIER":"logger","MESSAGE":"kernel: {}"}}',
        '{{"prompt":"why does it print {}","ident":"kernel","host":"n12"}}',
        '{{"role":"user","content":"{}","host":"n12","ident":"kernel"}}',
        '{{"host":"n12","ident":"python","message":"{}"}}',
        '{{"messages":[{{"role":"user","content":"my dmesg: {}"}}]}}',
        "_TRANSPORT=stdout\n_HOSTNAME=n12\nSYSLOG_IDENTIFIER=kernel\nMESSAGE={}",
        "_TRANSPORT=kernel\n_HOSTNAME=n12\n\nstep 1\nMESSAGE={}",
        "Mar 12 04:12:15 n12 kern.crit python[7]: {}",
        "sample 12 04:12:15 {}",
        "sample 12 04:12:15 he said: {}",
        "mars 12 04:12:15 {}",
        "Vorschlag 12 04:12:15 n12 python[7]: {}",
        "question 3 | {}",
        "1741752735.123456 he said: {}",
    ],
)
@pytest.mark.parametrize("message", [XID, PANIC, READ_ONLY])
def test_what_another_program_writes_in_such_a_form_drains_nothing(line: str, message: str) -> None:
    """Of a journal only the transport says what is the kernel's: any program may call itself so."""
    assert [each.code for each in verdicts(line.format(message)) if each.follows is Follows.DRAIN] == []


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("Mar 12 04:12:15 n12.cluster.local slurmd[77]: error: x", "n12.cluster.local"),
        ("slurmstepd-n07: error: x", "n07"),
        ("2026-03-12 04:12:15 ERROR trainer: x", None),
        ("step 100 loss 2.1", None),
    ],
)
def test_a_host_is_what_a_header_names(line: str, host: str | None) -> None:
    assert host_of(line.encode()) == host


@pytest.mark.parametrize(
    "header",
    [
        "[2026-03-10T12:00:00.101] [1234.batch] error: {}",
        "[2026-03-10T12:00:00.101] [1234.0] error: {}",
        "[2026-03-10T12:00:00.101] [1234_7.extern] error: {}",
        "slurmstepd-n07: error: {}",
        "Mar 10 12:00:00 n07 slurmstepd[4112]: error: {}",
        '{{"_TRANSPORT":"journal","_HOSTNAME":"n07","SYSLOG_IDENTIFIER":"slurmstepd","MESSAGE":"error: {}"}}',
    ],
)
def test_slurm_s_steps_are_heard_in_slurmd_s_log_and_elsewhere(header: str) -> None:
    """In slurmd's own log slurmstepd writes its step in brackets (Slurm, src/common/log.c)."""
    found = one(
        header.format("Detected 1 oom_kill event in StepId=1234.0. Some of the step tasks have been OOM Killed.")
    )
    assert (found.code, found.follows, found.subject) == ("slurm.oom", Follows.RESTART, "1234.0")


@pytest.mark.parametrize(
    "before",
    [
        "step 100 loss 2.1",
        "[sample] user: here is what dmesg says",
        "Q: my server prints",
        "<|im_start|>user",
        "### Instruction:",
        "loss: 2.1",
        "INFO: training goes on",
        "2026-03-12 04:12:15,120 - trainer - INFO - sample",
        "Mar 12 04:12:15 n12 systemd[1]: Started train.service.",
    ],
)
def test_a_message_without_a_header_amid_a_program_s_lines_drains_nothing(before: str) -> None:
    """A training that prints what it generates, line by line: no kernel writes into its log."""
    for message in (XID, READ_ONLY):
        found = verdicts(f"{before}\nNVRM: GPU at PCI:0000:9b:00: GPU-1\n{message}\n")
        assert [each.follows for each in found] == [Follows.WATCH]


@pytest.mark.parametrize(
    "before",
    [
        "",
        "usb 1-1: new high-speed USB device number 2 using xhci_hcd",
        "docker0: port 3(veth1) entered disabled state",
        "nvidia 0000:9b:00.0: enabling device (0000 -> 0003)",
        "NVRM: GPU at PCI:0000:9b:00: GPU-1\n   more of it",
        "[12345.678901] whatever the kernel says",
    ],
)
def test_a_message_without_a_header_is_told_in_a_log_of_the_kernel(before: str) -> None:
    """As ``dmesg -t`` and ``journalctl -k -o cat`` print it."""
    for message in (XID, READ_ONLY):
        assert [each.follows for each in verdicts(f"{before}\n{message}\n")] == [Follows.DRAIN]


@pytest.mark.parametrize(
    "header",
    [
        "\x1b[36m(WorkerDict pid=4112, ip=10.0.0.7)\x1b[0m {}",
        "10.0.0.7: {}",
        "0: n07: {}",
        "train-worker-0 \u203a pytorch {}",
        '{{"log":"{}\\n","stream":"stderr","time":"2026-03-12T04:12:15.1Z"}}',
        '{{"log":"{}\\n","stream":"stderr","attrs":{{"tag":"x"}},"time":"2026-03-12T04:12:15.1Z"}}',
        '{{"_TRANSPORT":"journal","_HOSTNAME":"n07","SYSLOG_IDENTIFIER":"python3","MESSAGE":"{}"}}',
        '{{"log":{{"file":{{"path":"/var/log/train.log"}}}},"host":{{"name":"n07"}},"message":"{}"}}',
    ],
)
def test_a_rank_s_message_is_told_behind_what_gathers_logs(header: str) -> None:
    """Ray's workers, DeepSpeed's pdsh by addresses, srun and pdsh, stern, Docker's json-file, a journal, Filebeat."""
    found = one(header.format("[rank7]:[E626 05:14:36.3 ProcessGroupNCCL.cpp:1743] [PG 0 Rank 7] watchdog is stuck"))
    assert (found.follows, found.subject) == (Follows.RESTART, "7")
    assert one(header.format("CUDA error: uncorrectable ECC error encountered")).follows is Follows.DRAIN
