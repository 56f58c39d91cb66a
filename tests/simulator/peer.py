"""First come, first served and EASY in plain Python, with the simulator's semantics: what its speed is measured against.

python3 tests/simulator/peer.py TRACE.csv GPUS [fifo|easy|priority-easy] [PRIORITY_COLUMN]

Prints jobs a second of the loop alone, and the SHA-256 of the rows `id,start,end`, which is the one of
tests/simulator/traces/expected.csv when the schedules are the same.
"""
import bisect, csv, hashlib, heapq, sys, time

def simulate(jobs, gpus, order, backfill):
    """jobs: (submit, duration, gpus, priority), in order. Returns starts."""
    starts, ends, waiting, free, following = [None] * len(jobs), [], [], gpus, 0
    while following < len(jobs) or ends:
        now = min(ends[0][0] if ends else float("inf"), jobs[following][0] if following < len(jobs) else float("inf"))
        while ends and ends[0][0] == now:
            free += jobs[heapq.heappop(ends)[1]][2]
        while following < len(jobs) and jobs[following][0] == now:
            bisect.insort(waiting, (order(jobs[following]), following))
            following += 1
        while waiting and jobs[waiting[0][1]][2] <= free:
            job = waiting.pop(0)[1]
            starts[job] = now
            free -= jobs[job][2]
            heapq.heappush(ends, (now + jobs[job][1], job))
        if not backfill or len(waiting) < 2 or not free:
            continue
        need, spare, shadow = jobs[waiting[0][1]][2], free, None
        for end, job in sorted(ends):
            if shadow is not None and end > shadow:
                break
            spare += jobs[job][2]
            if shadow is None and spare >= need:
                shadow = end
        spare -= need
        kept = [waiting[0]]
        for entry in waiting[1:]:
            job = entry[1]
            _, duration, size, _ = jobs[job]
            in_time = now + duration <= shadow
            if size <= free and (in_time or size <= spare):
                starts[job] = now
                free -= size
                spare -= 0 if in_time else size
                heapq.heappush(ends, (now + duration, job))
            else:
                kept.append(entry)
        waiting = kept
    return starts

def main():
    path, gpus, strategy = sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "easy"
    column = sys.argv[4] if len(sys.argv) > 4 else None
    rows = sorted(csv.DictReader(open(path)), key=lambda row: (int(row["submit"]), int(row["id"])))
    jobs = [(int(r["submit"]), int(r["duration"]), int(r["gpus"]), int(r[column]) if column else 0) for r in rows]
    order = (lambda job: -job[3]) if strategy.startswith("priority") else (lambda job: 0)
    began = time.perf_counter()
    starts = simulate(jobs, gpus, order, strategy != "fifo")
    seconds = time.perf_counter() - began
    text = "".join(f"{row['id']},{start},{start + job[1]}\n" for row, job, start in zip(rows, jobs, starts))
    print(f"{strategy}: {len(jobs) / seconds:,.0f} jobs/s, {hashlib.sha256(text.encode()).hexdigest()}")

main()
