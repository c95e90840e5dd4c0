"""``python -m changes OLD [NEW]`` prints what differs between two versions of the standard, and what of it breaks."""

import argparse
import sys
from pathlib import Path

from changes import releases, stability
from changes.change import RULES, SEVERITIES
from changes.report import as_json, as_markdown, compare
from changes.versions import VersionError, read


def main() -> int:
    """Run the command; the answer is its exit status."""
    parser = argparse.ArgumentParser(prog="changes", description=__doc__)
    parser.add_argument("old", metavar="OLD", nargs="?", help="folder of a checkout, or a git revision")
    parser.add_argument("new", metavar="NEW", nargs="?", help="the same; this checkout by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the changes to a file as well, as JSON")
    parser.add_argument("--fail-on", choices=SEVERITIES, help="exit with 1 where a change weighs as much or more")
    parser.add_argument("--rules", action="store_true", help="list the rules and compare nothing")
    parser.add_argument("--frozen", metavar="RELEASE", help="compare this checkout with the requirements of a release")
    parser.add_argument(
        "--freeze", metavar="RELEASE", help="keep the requirements of OLD, or of this checkout, as those of a release"
    )
    arguments = parser.parse_args()
    if arguments.rules:
        print(*(f"{rule:26}{meaning}" for rule, meaning in RULES.items()), sep="\n")
        return 0
    if arguments.frozen:
        return _frozen(arguments.frozen)
    if arguments.old is None and not arguments.freeze:
        parser.error("OLD is missing: name a folder or a git revision, such as HEAD~10")
    try:
        if arguments.freeze:
            print(f"wrote {releases.write(read(arguments.old), arguments.freeze)}")
            return 0
        report = compare(read(arguments.old), read(arguments.new))
    except VersionError as error:
        print(f"cannot compare: {error}", f"hint: {error.hint}", sep="\n", file=sys.stderr)
        return 2
    if arguments.json:
        arguments.json.write_text(as_json(report), "utf-8")
    print(as_markdown(report), end="")
    limit = SEVERITIES.index(arguments.fail_on) if arguments.fail_on else -1
    return 1 if any(SEVERITIES.index(one.severity) <= limit for one in report.changes) else 0


def _frozen(name: str) -> int:
    """Print what this checkout changes of a frozen set; fails where a breaking change is not called."""
    try:
        version, meant = read(None), releases.called(name)
        found = stability.with_marks(releases.since(releases.read_frozen(name), version), version, version)
    except OSError as error:
        print(f"cannot compare: {error}", f"hint: {releases.RELEASES} has what is frozen", sep="\n", file=sys.stderr)
        return 2
    for one in found:
        told = f" ({one.mark})" if one.mark and one.severity == "breaking" else ""
        print(f"{one.severity:10} {one.rule:26} {one.place}{told}: {one.detail}")
    return (
        1
        if any(one.severity == "breaking" and one.rule not in meant.get(one.place.split()[-1], ()) for one in found)
        else 0
    )


if __name__ == "__main__":
    sys.exit(main())
