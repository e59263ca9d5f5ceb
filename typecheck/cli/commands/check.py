"""`anyshape check [TARGET]` prints for which of the declared inputs a program runs, or each program of a
project.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from ....constraints.engine.kernels import DEVICES
from ....constraints.ir.spec_text import SpecError
from ...checking.clock import Progress
from ...checking.reading import Reading
from ...facade import Answered, Report
from ...project import baseline as baselines
from ...project.baseline import Baseline
from ...project.cache import Cache, default_folder
from ...project.config import ConfigError, ConfiguredJob, Project, find
from ...project.jobs import JobAnswer, answer
from ...project.suppression import suppressed
from ...render.formats import FORMATS, written
from ...report.codes import SUSPICIONS
from ...report.target_names import source_of
from ...targets.target_error import TargetError
from ..common import (
    BAD_INPUT,
    KNOWN,
    METHOD,
    PRINTED,
    PROGRAM,
    TARGETS,
    CommandParser,
    Commands,
    add_format,
    add_output,
    add_target,
    command,
    exit_code,
    names_file,
    put,
    require_writable,
    running_for,
)
from ..errors import told
from ..fixing import Fixing, fixed
from ..terminal import coloured, put_now, width
from .submit import add_server, awaited, client_of, packed, submitted

_EPILOG: Final = f"""\
{TARGETS}
Without TARGET, all targets of the nearest pyproject.toml are checked:
  [[tool.anyshape.targets]]
  target = "models/unet.py:UNet"
  inputs = "x: float32[b, 3, h, w]"
  assume = ["h % 64 == 0", "w % 64 == 0"]

Results are cached on disk, and used again as long as the program, its inputs and all packages are the same.

With --server the program is traced here and decided by a service. The service gets what `anyshape submit`
sends: no weights, and with --no-source no source lines. Then no repairs are sought.

Exit codes: 0 proved, or all findings are suppressed; 1 refined or refuted; 2 bad usage or input;
3 unknown; 130 interrupted.
"""


def add(commands: Commands) -> None:
    parser = command(commands, "check", "find out for which declared inputs a program runs", _EPILOG)
    add_options(parser)
    fixes = parser.add_argument_group("repairs")
    fixes.add_argument(
        "--fix",
        action="store_true",
        help="make the repairs that keep the meaning of the program: print their diff, write the files, "
        "and check again",
    )
    help = "with --fix or --diff, also make repairs that may change the meaning of the program"
    fixes.add_argument("--unsafe-fixes", action="store_true", help=help)
    fixes.add_argument("--diff", action="store_true", help="print the diff of the repairs, and write nothing")
    parser.set_defaults(run=run)


def add_options(parser: CommandParser) -> None:
    """Adds the options for the target of the check and the form of the report."""
    add_target(parser, optional=True)
    add_format(parser, "report", FORMATS)
    add_output(parser, "report")
    program, printed = parser.section(PROGRAM), parser.section(PRINTED)
    method, known = parser.section(METHOD), parser.section(KNOWN)
    printed.add_argument(
        "--concise",
        action="store_const",
        const="concise",
        dest="format",
        help="print a line for each finding, file:line:column: code: message, and one for the answer",
    )
    printed.add_argument(
        "--quiet", "-q", action="store_true", help="print a line for each target that does not pass, only"
    )
    printed.add_argument(
        "--verbose",
        "-v",
        action="store_true",
        help="tell all of each finding: its requirement, what is raised, all repairs, the calls on the way",
    )
    printed.add_argument("--shapes", action="store_true", help="show the shape of every intermediate value")
    names = [*(code.value for code in SUSPICIONS), "all"]
    help = f"also look for likely mistakes in programs that run: {', '.join(names)}"
    method.add_argument("--suspect", action="append", choices=names, metavar="CODE", default=[], help=help)
    method.add_argument(
        "--second-solver", choices=("cvc5",), help="have the verdict confirmed by a second solver"
    )
    program.add_argument(
        "--device", choices=DEVICES, help="device whose kernels are assumed (default: that of the tensors)"
    )
    mode = program.add_mutually_exclusive_group()
    mode.add_argument(
        "--train",
        action="store_true",
        default=None,
        dest="training",
        help="look at modules in training (default: in evaluation, and at what is otherwise in training)",
    )
    help = "look at modules in evaluation only"
    mode.add_argument("--eval", action="store_false", default=None, dest="training", help=help)
    forms = ("constraints", "smt2")
    printed.add_argument("--dump", choices=forms, help="print the constraint system instead of deciding it")
    method.add_argument(
        "--no-run", action="store_true", help="never run the program, neither on examples nor to try repairs"
    )
    method.add_argument("--no-cache", action="store_true", help="neither read nor write the cache of results")
    help = "file of known findings, which do not count"
    names_file(known.add_argument("--baseline", metavar="FILE", type=Path, help=help))
    known.add_argument(
        "--write-baseline", action="store_true", help="write all findings into the file of known findings"
    )
    add_server(parser)
    parser.set_defaults(budget=None, fix=False, unsafe_fixes=False, diff=False)


def run(options: argparse.Namespace, read: set[str] | None = None) -> int:
    """Checks and reports; adds to `read` the user's files that the answer depends on."""
    if options.server is None and (options.token_file is not None or options.no_source):
        raise ConfigError("--token-file and --no-source need a service", "name it by --server URL")
    _known_fixes(options)
    require_writable(options.output)
    if options.dump:
        return _dump(options)
    project = find()
    jobs = _jobs(options, project)
    output = options.output and options.output.absolute()
    known = _baseline(options, project)
    whole = options.target is None
    folder: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if whole and project is not None:
        folder = contextlib.chdir(project.root)
    every = whole or project is None or not project.jobs
    started = time.time()
    with _answering(options) as answering, folder:
        early = _EarlyAnswer(options)
        checked, failed = _checked(jobs, answering, set() if read is None else read, early)
        reports: Sequence[Report] = [report for _, report in checked]
        if options.write_baseline:
            return _write(known, suppressed(reports, project, all=False)) or failed
        if options.fix or options.diff:
            fixing = _fixing(options, project, jobs, lambda now: suppressed(now, project, known, all=every))
            reports = fixed([job for job, _ in checked], reports, fixing, started)
        shown = suppressed(reports, project, known, all=every)
        text = "" if options.diff else _shown(shown, options, whole, early)
    put(text, output)
    return failed or max((exit_code(report) for report in shown), key=_SEVERITY.index)


def _known_fixes(options: argparse.Namespace) -> None:
    """Raises ConfigError for options that do not go together with --fix and --diff."""
    if options.unsafe_fixes and not (options.fix or options.diff):
        raise ConfigError("--unsafe-fixes needs --fix or --diff", "add one of them")
    others = ("server", "dump", "no_run", "write_baseline")
    if (options.fix or options.diff) and (name := next((n for n in others if getattr(options, n)), "")):
        told = f"--fix and --diff cannot be combined with --{name.replace('_', '-')}"
        raise ConfigError(told, "repairs are tried on this machine, and made in its files")


def _fixing(
    options: argparse.Namespace, project: Project | None, jobs: Sequence[ConfiguredJob],
    known: Callable[[Sequence[Report]], Sequence[Report]],
) -> Fixing:
    sources = [Path(source) for job in jobs if (source := source_of(job.target)).endswith(".py")]
    folders = [Path.cwd(), *([project.root] if project else []), *(source.parent for source in sources)]
    stream = sys.stdout if options.format == "text" or options.diff else sys.stderr
    return Fixing(
        write=options.fix and not options.diff, unsafe=options.unsafe_fixes, cached=not options.no_cache,
        folders=[folder.resolve() for folder in folders], known=known,
        show=lambda diff: print(diff, end="" if options.diff else "\n", file=stream, flush=True),
    )  # fmt: skip


def _dump(options: argparse.Namespace) -> int:
    """The system of the one target that is named."""
    if options.target is None:
        raise ConfigError("--dump needs a target", "name a TARGET")
    if options.server is not None:
        raise ConfigError("--dump cannot be combined with --server", "leave out --server")
    budget = 30.0 if options.budget is None else options.budget
    with running_for(budget) as tell:
        from ..dumping import dump

        text = dump(
            options.target, options.inputs, options.assume, options.dump, budget_s=budget, progress=tell,
            training=options.training,
        )  # fmt: skip
    put(text, options.output)
    return 0


_SEVERITY: Final = (0, 3, 1, BAD_INPUT)
"""Exit codes, the one that says most about a project last."""


def _jobs(options: argparse.Namespace, project: Project | None) -> Sequence[ConfiguredJob]:
    """Returns the jobs that the command line names, else those that the project lists."""
    if options.target is None:
        if options.inputs or options.assume:
            raise ConfigError("--input and --assume apply to one TARGET, and none is named")
        if project is None or not project.jobs:
            raise ConfigError("there is nothing to check", "name a TARGET, or list targets in pyproject.toml")
        return [_with_options(job, options) for job in project.jobs]
    configured = project.job(options.target) if project and project.root == Path.cwd().resolve() else None
    if configured is not None and options.inputs is None and not options.assume:
        return [_with_options(configured, options)]
    inputs = None if options.inputs is None else tuple(options.inputs)
    return [_with_options(ConfiguredJob(options.target, inputs, tuple(options.assume)), options)]


def _with_options(job: ConfiguredJob, options: argparse.Namespace) -> ConfiguredJob:
    budget = job.budget_s if options.budget is None else options.budget
    suspect = tuple(dict.fromkeys((*job.suspect, *options.suspect)))
    second = options.second_solver or job.second_solver
    replay = job.replay and not options.no_run
    device = options.device or job.device
    training = job.training if options.training is None else options.training
    return ConfiguredJob(
        job.target, job.inputs, job.assume, budget, replay, suspect, second, device, training
    )


def _baseline(options: argparse.Namespace, project: Project | None) -> Baseline | None:
    path = options.baseline.absolute() if options.baseline else project.baseline if project else None
    if options.write_baseline:
        if path is None:
            raise ConfigError("--write-baseline needs a file", "add --baseline FILE")
        return baselines.read(path) if path.exists() else Baseline(path)
    return None if path is None else baselines.read(path)


def _write(known: Baseline | None, reports: Sequence[Report]) -> int:
    assert known is not None
    renewed = known.renewed(reports)
    renewed.write()
    count = renewed.left.total()
    print(f"{count} {'finding' if count == 1 else 'findings'} known in {renewed.path}")
    return 0


Answering: TypeAlias = Callable[[ConfiguredJob, Progress, Answered], JobAnswer]
"""Returns the answer to a job, and reports its progress. Raises what `check` raises."""


class _EarlyAnswer:
    """Prints the answer on one target as soon as it is known, where the whole report is going to be printed
    as text.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        changed = options.quiet or options.output or options.write_baseline or options.fix or options.diff
        self._wanted = options.target is not None and options.format == "text" and not changed
        self._stream, self._verbose = sys.stdout, options.verbose
        self._printed = ""

    def __call__(self, report: Report) -> None:
        if self._wanted:
            self._printed = self._text(report)
            put_now(f"{self._printed}\n", self._stream)

    def stands(self, report: Report) -> bool:
        """Returns whether the answer has been printed, and is that of the whole report. One that is not is
        withdrawn.
        """
        if self._printed and self._printed != self._text(report):
            put_now("More examples contradict this answer, which is withdrawn.\n\n", self._stream)
            self._printed = ""
        return bool(self._printed)

    def _text(self, report: Report) -> str:
        from ...render.text import answer_text

        return answer_text(report, width=width(), colour=coloured(self._stream), verbose=self._verbose)


@contextlib.contextmanager
def _answering(options: argparse.Namespace) -> Iterator[Answering]:
    """This process, with what it keeps on disk, or the service that is named."""
    if options.server is None:
        cache = None if options.no_cache else Cache(default_folder())
        yield lambda job, tell, answered: answer(job, cache, tell, answered)
        return
    with client_of(options) as client:

        def ask(job: ConfiguredJob, tell: Progress, answered: Answered) -> JobAnswer:
            with Reading() as reading:
                sent = packed(job, tell, source=not options.no_source)
            report = awaited(client, submitted(client, job, sent), tell)
            return JobAnswer(sent.repaired(report) if job.replay else report, reading.files)

        yield ask


def _checked(
    jobs: Sequence[ConfiguredJob], answering: Answering, read: set[str], answered: Answered
) -> tuple[list[tuple[ConfiguredJob, Report]], int]:
    """The jobs with their reports, and the exit code for what could not be checked. One bad target does not
    stop the others.

    Raises SpecError and TargetError where there is but one.
    """
    reports: list[tuple[ConfiguredJob, Report]] = []
    failed = 0
    for job in jobs:
        try:
            with running_for(job.budget_s) as tell:
                found = answering(job, tell, answered)
            read.update(found.files)
            reports.append((job, found.report))
        except (SpecError, TargetError) as error:
            if len(jobs) == 1:
                raise
            print(f"{job.target}:\n{told(error)}", file=sys.stderr)
            failed = BAD_INPUT
    return reports, failed


def _summarise(reports: Sequence[Report]) -> None:
    """Adds the reports to the summary of the job that GitHub Actions names, where it runs. Raises ConfigError
    where that cannot be written.
    """
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with open(summary, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(written("markdown", reports, project=True))
        except OSError as error:
            problem = f"{summary}, which GITHUB_STEP_SUMMARY names, cannot be written: {error.strerror}"
            raise ConfigError(problem) from None


def _shown(
    reports: Sequence[Report], options: argparse.Namespace, project: bool, early: _EarlyAnswer
) -> str:
    if options.quiet:
        from ...render.concise import answer_line

        return "".join(f"{answer_line(report)}\n" for report in reports if not report.passes)
    if options.format != "text":
        if options.format == "github":
            _summarise(reports)
        return written(options.format, reports, project=project)
    from ...render.text import details_text, overview, to_text

    colour = options.output is None and coloured(sys.stdout)
    every = options.verbose or options.shapes or not project
    told = [r for r in reports if every or not r.passes or any(not f.suppressed for f in r.findings)]
    form = {"width": width(), "colour": colour, "shapes": options.shapes, "verbose": options.verbose}
    texts = [(details_text if early.stands(r) else to_text)(r, **form) for r in told]
    return "\n".join((overview(reports, colour=colour), *texts) if project else texts)
