"""Progress on stderr: a live bar with an estimate of the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from compare.records.job import Job
from compare.run.pace import Pace
from compare.words.terminal import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


class Reporter:
    """Hears of each job and says nothing; others say it. `pace` is told the jobs, or their number, before the first."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.label = ""
        self._causes: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def start(self, label: str) -> None:
        """A job begins."""
        self.label = label
        self.pace.start()
        self.refresh()

    def finish(self, error: str | None = None, job: Job | None = None) -> None:
        """The job has ended, well or with an error."""
        self.ended(self.pace.finish(job), error)
        self.refresh()

    def skip(self, job: Job | None = None) -> None:
        """A job need not run."""
        self.pace.skip(job)
        self.refresh()

    def step(self, what: str) -> None:
        """The worker of the job tells what it does now."""

    def cause(self, ended: str | None) -> None:
        """Say why workers had to be ended after they had answered, each reason once."""
        if ended and ended not in self._causes:
            self._causes.add(ended)
            self.notice(ended)

    def refresh(self) -> None:
        """Show how far the run is."""

    def ended(self, seconds: float, error: str | None) -> None:
        """Say how the job ended."""

    def notice(self, text: str) -> None:
        """Say something worth a line."""


class LineReporter(Reporter):
    """One plain line per job that ran, for logs."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__()
        self.stream = stream

    def ended(self, seconds: float, error: str | None) -> None:
        """`[ 3/42] time rnn_text/small, process 1: 2.1 s, about 80 s left`."""
        ending = f"FAILED, {error}" if error else f"{seconds:.1f} s"
        place = f"{self.pace.done:{len(str(self.pace.total))}}/{self.pace.total}"
        self.notice(f"[{place}] {self.label}: {ending}, {self.pace.left}")

    def notice(self, text: str) -> None:
        """The text on a line of its own."""
        self.stream.write(plain(text) + "\n")
        self.stream.flush()


class Bar(Reporter):
    """A live bar: how far, how long it will take, and what is running."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.console = console
        self.progress = _progress(console)
        self.task = self.progress.add_task("", total=None, left="")

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def refresh(self) -> None:
        """Move the bar."""
        pace = self.pace
        self.progress.update(
            self.task, completed=pace.done, total=pace.total, description=plain(self.label), left=pace.left
        )

    def step(self, what: str) -> None:
        """It stands beside the bar."""
        self.progress.update(self.task, description=plain(what))

    def ended(self, seconds: float, error: str | None) -> None:
        """A failure leaves a line above the bar."""
        if error:
            self.notice(f"{self.label} failed after {seconds:.1f} s: {error}")

    def notice(self, text: str) -> None:
        """The text above the bar."""
        self.console.print(plain(text), markup=False, highlight=False)


def reporter() -> Reporter:
    """The one that suits stderr: a bar on a terminal, lines elsewhere. NO_COLOR is respected."""
    from rich.console import Console

    console = Console(stderr=True)
    return Bar(console) if console.is_terminal and not console.is_dumb_terminal else LineReporter(console.file)


def _progress(console: Console) -> Progress:
    from rich import progress
    from rich.table import Column

    return progress.Progress(
        progress.SpinnerColumn(),
        progress.BarColumn(bar_width=12),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.fields[left]}", table_column=Column(no_wrap=True)),
        progress.TextColumn(
            "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", max_width=26)
        ),
        console=console,
        transient=True,
    )
