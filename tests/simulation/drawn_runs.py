"""Small dataflows for the model of launch tasks that run each other's steps."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from airflow_dagsched.model.dataflow import Channel, Dataflow, Step, Task


@dataclass(frozen=True)
class Drawn:
    """Launch tasks in a chain of ordinary tasks, and which steps each has."""

    groups: dict[str, tuple[str, ...]]
    above: dict[str, tuple[str, ...]]
    """Step or ordinary task -> what is directly above it."""
    tasks: tuple[str, ...]

    @property
    def home(self) -> dict[str, str]:
        return {step: launch for launch, steps in self.groups.items() for step in steps}

    def list_upstream(self, launch: str) -> set[str]:
        """What the launch task waits for."""
        return {up for step in self.groups[launch] for up in self.above[step] if up not in self.groups[launch]}

    def find_below(self, launch: str) -> set[str]:
        """Launch and ordinary tasks downstream, and it."""
        found, home = {launch}, self.home
        for _ in self.above:
            found |= {
                home.get(name, name) for name, ups in self.above.items() if any(home.get(up, up) in found for up in ups)
            }
        return found

    def make_dataflow(self) -> Dataflow:
        steps = self.home
        return Dataflow(
            name="moving",
            steps=tuple(Step(id=name) for name in steps),
            channels=tuple(
                Channel(src=up, dst=name) for name in steps for up in self.above[name] if up in steps
            ),
            tasks=tuple(Task(id=name) for name in self.tasks),
            dependencies=tuple(
                (up, name) for name, ups in self.above.items() for up in ups if not {up, name} <= steps.keys()
            ),
        )  # fmt: skip


def draw_run(rng: Random) -> Drawn:
    """2 to 4 launch tasks of 1 to 3 steps: of each but the first one step waits for an ordinary task."""
    groups: dict[str, tuple[str, ...]] = {}
    above: dict[str, tuple[str, ...]] = {}
    tasks: list[str] = []
    for at in range(rng.randint(2, 4)):
        names = [f"{'abcd'[at]}{number}" for number in range(rng.randint(1, 3))]
        earlier = [step for steps in groups.values() for step in steps]
        if at:
            tasks.append(f"t{at}")
            above[tasks[-1]] = (rng.choice(earlier),)
        for number, name in enumerate(names):
            ups = [up for up in names[:number] if rng.random() < 0.5]
            ups += [up for up in earlier if rng.random() < 0.2]
            # The last waits for the ordinary task; the others for what they happen to read.
            above[name] = (*ups, *([tasks[-1]] if at and number == len(names) - 1 else []))
        groups[f"launch_{at}"] = tuple(names)
    return Drawn(groups, above, tuple(tasks))
