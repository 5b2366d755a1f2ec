"""Pipeline: computations that run together, checked as a whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from everview.errors import DataError, ProgramError
from everview.streams.pipelines.description import (
    AggregateStage,
    MapStage,
    SetStage,
    Source,
    Stage,
    TopStage,
    is_scattering,
)

__all__ = ["Pipeline", "check_partitions"]


@dataclass(frozen=True, init=False)
class Pipeline:
    """The stages that some end points need, each after the one that feeds it.

    What computations share they share by being built on the same stage. ProgramError when two stages have
    one name, or when a stage is fed by a partitioning that would make it wrong.
    """

    stages: tuple[Stage, ...]

    def __init__(self, *stages: Stage) -> None:
        ordered: dict[str, Stage] = {}
        for stage in stages:
            if not isinstance(stage, SetStage | MapStage | AggregateStage | TopStage):
                raise DataError(
                    f"a pipeline is made of stages, such as source.count('n'), not of {stage!r}", value=stage
                )
            for one in _upwards(stage):
                known = ordered.setdefault(one.name, one)
                if known != one:
                    raise ProgramError(
                        f"two different stages are called {one.name}",
                        hint="give each a name of its own; to share one, build both computations on it",
                    )
        sources = {one.input.feeder.name for one in ordered.values() if isinstance(one.input.feeder, Source)}
        for name in sorted(sources & {*ordered}):
            raise ProgramError(f"a source and a stage are both called {name}", hint="rename one of them")
        object.__setattr__(self, "stages", tuple(ordered.values()))
        check_partitions(self.stages)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources, sorted."""
        feeders = {stage.input.feeder for stage in self.stages}
        return tuple(sorted(feeder.name for feeder in feeders if isinstance(feeder, Source)))

    @property
    def by_name(self) -> Mapping[str, Stage]:
        """The stages by their names."""
        return {stage.name: stage for stage in self.stages}

    def stage(self, name: str) -> Stage:
        """Return a stage; DataError when there is none of that name."""
        found = self.by_name.get(name)
        if found is None:
            raise DataError(
                f"there is no stage {name!r}, only {', '.join(self.by_name) or 'none'}", value=name
            )
        return found

    def fed_by(self, name: str) -> tuple[Stage, ...]:
        """Return the stages that a source or stage feeds."""
        return tuple(stage for stage in self.stages if stage.input.feeder.name == name)

    def below(self, names: set[str]) -> tuple[Stage, ...]:
        """Return these stages and all that they feed, in order."""
        found: dict[str, Stage] = {}
        for stage in self.stages:
            if stage.name in names or stage.input.feeder.name in found:
                found[stage.name] = stage
        return tuple(found.values())

    def with_stages(self, *stages: Stage) -> Pipeline:
        """Return this pipeline with more computations."""
        return Pipeline(*self.stages, *stages)


def signature(stage: Stage) -> str:
    """Say what a store's state of a stage depends on, functions of Python aside, which have no equality."""
    match stage:
        case SetStage():
            kind = f"set in {stage.partitioning.count}"
        case MapStage():
            kind = f"map of {_shown(stage.inner)} in {stage.partitioning.count}"
        case AggregateStage():
            kind = _shown(stage.aggregate)
        case TopStage():
            kind = f"top {stage.n}"
        case _:
            assert_never(stage)
    return f"{kind} over {stage.input.feeder.name}"


def _shown(aggregate: object) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(aggregate))


def check_partitions(stages: tuple[Stage, ...]) -> None:
    """Refuse what a partitioning would make wrong: a map that scatters its keys may be read, not built on."""
    for stage in stages:
        feeder = stage.input.feeder
        if not isinstance(feeder, MapStage) or not is_scattering(feeder):
            continue
        hint = f"partition {feeder.name} by_key(count), or by_key(count, function of the key)"
        if isinstance(stage, TopStage):
            raise ProgramError(
                f"the top-N stage {stage.name} is fed by {feeder.name}, whose partitioning by element "
                "scatters keys over partitions: each would rank parts of totals, and drop the rest",
                hint=hint,
            )
        raise ProgramError(
            f"{stage.name} is fed by {feeder.name}, whose partitioning by element scatters keys over "
            "partitions: it would see parts of values",
            hint=hint,
        )


def _upwards(stage: Stage) -> list[Stage]:
    """Return a stage after those that feed it."""
    path: list[Stage] = [stage]
    while not isinstance(path[-1].input.feeder, Source):
        path.append(path[-1].input.feeder)
    return path[::-1]
