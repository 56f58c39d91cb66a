"""Placement by rivals at equal numbers of tried orders: a genetic algorithm, particle swarms and the published osprey
algorithm, each over random keys with best-fit decoding, from random starts and from the greedy order.

    cargo build --release
    python3 tests/placement/rivals.py target/release/osprey $(ls tests/placement/instances/*.json | grep -v plan)

A number is the mean over the seeds, as a share of what `osprey place --strategy exact` finds. With `origin` alone, what
the published algorithm and particle swarms find of functions whose best point is the origin, and of the same functions
shifted. Standard library only; a run takes some minutes.
"""

import json
import math
import pathlib
import random
import subprocess
import sys

TRIES = 10_000
SEEDS = (1, 2, 3)
AGENTS = 50


class Instance:
    """Nodes and jobs; a plan is an order of the jobs, and best fit makes the plan of it."""

    def __init__(self, path):
        file = json.loads(pathlib.Path(path).read_text())
        self.size = file["gpus_per_node"]
        self.alpha = file["alpha"]
        self.free = [self.size - node["used"] for node in file["nodes"]]
        self.jobs = [(job["gpus"], job["priority"]) for job in file["jobs"]]

    def greedy(self):
        return sorted(range(len(self.jobs)), key=lambda job: (-self.jobs[job][1], -self.jobs[job][0]))

    def worth(self, order):
        """What the plan of an order is worth; of equal nodes it is the same which one is taken."""
        count = [0] * (self.size + 1)
        for free in self.free:
            count[free] += 1
        empty = self.size
        used = 0
        for job in order:
            gpus, priority = self.jobs[job]
            if gpus > self.size:
                nodes = gpus // self.size
                if count[empty] >= nodes:
                    count[empty] -= nodes
                    used += gpus * priority
                continue
            for level in range(gpus, self.size + 1):
                if count[level]:
                    count[level] -= 1
                    count[level - gpus] += 1
                    used += gpus * priority
                    break
        stranded = sum(level * count[level] for level in range(1, self.size))
        return used / 1000 - self.alpha * stranded


class Search:
    """Counts what it tries, and keeps the best."""

    def __init__(self, instance, seed, warm):
        self.instance, self.random, self.tries, self.best = instance, random.Random(seed), 0, float("-inf")
        self.best_keys = None
        self.jobs = len(instance.jobs)
        self.warm = warm

    def start(self):
        """Positions to begin with; the first is greedy's where the start is warm."""
        keys = [[self.random.random() for _ in range(self.jobs)] for _ in range(AGENTS)]
        if self.warm:
            for place, job in enumerate(self.instance.greedy()):
                keys[0][job] = place / self.jobs
        return keys

    def look(self, keys):
        self.tries += 1
        worth = self.instance.worth(sorted(range(self.jobs), key=keys.__getitem__))
        if worth > self.best:
            self.best, self.best_keys = worth, list(keys)
        return worth

    def goes_on(self):
        return self.tries < TRIES


def genetic(search):
    """Two of three picked by tournament, uniform crossover, one key in fifty drawn anew, the best one stays."""
    rng = search.random
    people = [(search.look(keys), keys) for keys in search.start()]
    while search.goes_on():
        people.sort(key=lambda one: -one[0])
        children = people[:1]
        while len(children) < AGENTS and search.goes_on():
            mother, father = (max(rng.sample(people, 3), key=lambda one: one[0])[1] for _ in range(2))
            child = [a if rng.random() < 0.5 else b for a, b in zip(mother, father)]
            child = [rng.random() if rng.random() < 0.02 else key for key in child]
            children.append((search.look(child), child))
        people = children


def particles(inertia, local_pull, global_pull):
    """Velocity, the best of each particle, the best of all."""

    def fly(search):
        rng = search.random
        flock = [[keys, [0.0] * search.jobs, search.look(keys), list(keys)] for keys in search.start()]
        while search.goes_on():
            for one in flock:
                keys, velocity, _, own = one
                for job in range(search.jobs):
                    pull = local_pull * rng.random() * (own[job] - keys[job])
                    pull += global_pull * rng.random() * (search.best_keys[job] - keys[job])
                    velocity[job] = max(-0.33, min(0.33, inertia * velocity[job] + pull))
                    keys[job] = max(0.0, min(1.0, keys[job] + velocity[job]))
                worth = search.look(keys)
                if worth > one[2]:
                    one[2], one[3] = worth, list(keys)

    return fly


def published(search):
    """Dehghani and Trojovský 2023: towards a better one's place, then small steps; kept only where better."""
    rng = search.random
    flock = [[search.look(keys), keys] for keys in search.start()]
    time = 0
    while search.goes_on():
        time += 1
        for one in flock:
            fish = [other[1] for other in flock if other[0] > one[0]] + [search.best_keys]
            prey = rng.choice(fish)
            moved = [key + rng.random() * (p - rng.choice((1, 2)) * key) for key, p in zip(one[1], prey)]
            keep_better(search, one, moved)
            moved = [key + rng.random() / time for key in one[1]]
            keep_better(search, one, moved)


def keep_better(search, one, moved):
    moved = [max(0.0, min(1.0, key)) for key in moved]
    worth = search.look(moved)
    if worth > one[0]:
        one[:] = [worth, moved]


RIVALS = {
    "GA": genetic,
    "PSO 0.7, 1.5, 1.5": particles(0.7, 1.5, 1.5),
    "PSO 0.9, 1.2, 0.8": particles(0.9, 1.2, 0.8),
    "OOA as published": published,
}


def place(program, path, *words):
    said = subprocess.run([program, "place", path, "--output", "json", *words], check=True, capture_output=True)
    return json.loads(said.stdout)


class Function:
    """A function of ten numbers that is to be small, in the place of an instance: keys stand for -100 to 100."""

    def __init__(self, value, shift):
        rng = random.Random(99)
        self.value, self.jobs = value, [None] * 10
        self.shift = [rng.uniform(-80, 80) if shift else 0.0 for _ in self.jobs]

    def error(self, keys):
        return self.value([200 * key - 100 - shift for key, shift in zip(keys, self.shift)])


class Descent(Search):
    def look(self, keys):
        self.tries += 1
        worth = -self.instance.error(keys)
        if worth > self.best:
            self.best, self.best_keys = worth, list(keys)
        return worth


def published_around_zero(search):
    """The published algorithm with the origin where its authors have it: keys are moved as numbers from -1 to 1."""
    rng = search.random
    flock = [[search.look(keys), keys] for keys in search.start()]
    time = 0
    while search.goes_on():
        time += 1
        for one in flock:
            prey = rng.choice([other[1] for other in flock if other[0] > one[0]] + [search.best_keys])
            at = [2 * key - 1 for key in one[1]]
            to = [2 * key - 1 for key in prey]
            moved = [x + rng.random() * (p - rng.choice((1, 2)) * x) for x, p in zip(at, to)]
            keep_better(search, one, [(x + 1) / 2 for x in moved])
            moved = [2 * key - 1 + (-1 + 2 * rng.random()) / time for key in one[1]]
            keep_better(search, one, [(x + 1) / 2 for x in moved])


def sphere(x):
    return sum(a * a for a in x)


def rastrigin(x):
    return sum(a * a - 10 * math.cos(2 * math.pi * a) + 10 for a in (a * 0.0512 for a in x))


def origin():
    print("| function | published OOA | PSO 0.7, 1.5, 1.5 |")
    print("|---|---|---|")
    for value in (sphere, rastrigin):
        for shift in (False, True):
            cells = [("shifted " if shift else "") + value.__name__]
            for rival in (published_around_zero, particles(0.7, 1.5, 1.5)):
                searches = [Descent(Function(value, shift), seed, False) for seed in SEEDS]
                for search in searches:
                    rival(search)
                cells.append(f"{sum(-search.best for search in searches) / len(searches):.2g}")
            print("| " + " | ".join(cells) + " |", flush=True)


def main(program, *paths):
    if program == "origin":
        return origin()
    print("| instance | exact | greedy | osprey | " + " | ".join(RIVALS) + " |")
    print("|---|---" + "|---" * (2 + len(RIVALS)) + "|")
    for path in paths:
        instance = Instance(path)
        exact = place(program, path, "--strategy", "exact")
        best = exact["objective"]
        mark = "" if exact["proven"] else " (not proven)"
        cells = [pathlib.Path(path).stem, f"{best:.3f}{mark}"]
        cells.append(f"{place(program, path, '--strategy', 'greedy')['objective'] / best:.4f}")
        found = [place(program, path, "--seed", str(seed))["objective"] / best for seed in SEEDS]
        cells.append(f"{sum(found) / len(found):.4f}")
        for rival in RIVALS.values():
            shares = []
            for warm in (False, True):
                searches = [Search(instance, seed, warm) for seed in SEEDS]
                for search in searches:
                    rival(search)
                shares.append(sum(search.best for search in searches) / len(searches) / best)
            cells.append(" / ".join(f"{share:.3f}" for share in shares))
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
