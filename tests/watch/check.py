"""Runs `osprey watch` in a pseudo terminal beside a pipeline that has something to do; see run.sh."""

import fcntl
import html
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pyte

OSPREY = os.environ["OSPREY"]
OUT = sys.argv[1]
SIZES = [(80, 24), (120, 40), (200, 60)]
TIERS = [("production", "inference", 1), ("production", "training", 8), ("dev", "training", 8), ("dev", "batch", 4)]
faults = []


def check(holds, sentence):
    print(("ok    " if holds else "WRONG ") + sentence)
    if not holds:
        faults.append(sentence)


def jobs():
    """A backlog of some minutes on six nodes."""
    for number in range(90):
        environment, workload, gpus = TIERS[number % len(TIERS)]
        tags = {"environment": environment, "workload": workload, "team": ["search", "vision", "speech"][number % 3]}
        tags["expected-duration"] = f"{60 + number}s"
        if number % 7 == 0:
            tags.update({"preemptible": "true", "checkpoint-interval": "60s"})
        yield {
            "jobName": f"{workload}-{number}",
            "jobDefinition": workload,
            "containerOverrides": {
                "command": ["sleep", str(8 + number % 20)],
                "resourceRequirements": [{"type": "GPU", "value": str(gpus)}],
            },
            "tags": tags,
        }


class Terminal:
    """A program in a pseudo terminal of a size."""

    def __init__(self, words, columns, rows, **environment):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", **environment})
            os.execvp(words[0], words)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.fd)

    def pump(self, seconds):
        until = time.time() + seconds
        while time.time() < until:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    return
                self.bytes += data
                self.stream.feed(data)

    def press(self, keys):
        os.write(self.fd, keys)
        self.pump(0.4)

    def text(self):
        return "\n".join(self.screen.display)

    def end(self, how):
        """Ends it, and says whether the terminal is as it was."""
        how()
        self.pump(0.6)
        modes = termios.tcgetattr(self.fd)
        _, status = os.waitpid(self.pid, 0)
        left = self.bytes.rfind(b"\x1b[?1049l") > self.bytes.rfind(b"\x1b[?1049h") >= 0
        shown = self.bytes.rfind(b"\x1b[?25h") > self.bytes.rfind(b"\x1b[?25l")
        return status, left and shown and modes == self.before

    def picture(self, name):
        named = {"default": None, "black": "#000", "white": "#ccc"}
        colour = lambda word, usual: usual if word == "default" else named.get(word) or "#" + word
        lines = []
        for row in range(self.screen.lines):
            line = ""
            for column in range(self.screen.columns):
                cell = self.screen.buffer[row][column]
                fore, back = colour(cell.fg, "#d8d8d8"), colour(cell.bg, "#111417")
                if cell.reverse:
                    fore, back = back, fore
                weight = ";font-weight:bold" if cell.bold else ""
                line += f'<span style="color:{fore};background:{back}{weight}">{html.escape(cell.data)}</span>'
            lines.append(line)
        page = os.path.join(OUT, name + ".html")
        style = 'body{margin:0;background:#111417}pre{margin:8px;font:15px/18px "DejaVu Sans Mono",monospace}'
        with open(page, "w", encoding="utf-8") as file:
            file.write(f"<meta charset=utf-8><style>{style}</style><pre>" + "\n".join(lines) + "</pre>")
        if shutil.which("chromium"):
            size = f"{int(self.screen.columns * 9.04) + 18},{self.screen.lines * 18 + 18}"
            shot = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={size}"]
            picture = os.path.abspath(os.path.join(OUT, name + ".png"))
            subprocess.run(
                ["chromium", *shot, f"--screenshot={picture}", page], stderr=subprocess.DEVNULL, check=True, timeout=60
            )


def ended(pid, seconds):
    """Whether a process ends within so long; it is ended otherwise."""
    until = time.time() + seconds
    while time.time() < until:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return True
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def looked_at(state):
    watch = [OSPREY, "watch", "--local", state, "--every", "0.5"]
    for columns, rows in SIZES:
        terminal = Terminal(watch, columns, rows)
        terminal.pump(6)
        terminal.press(b"j")
        terminal.press(b"j")
        text = terminal.text()
        name = f"{columns}x{rows}"
        terminal.picture(name)
        check(all(word in text for word in ["osprey watch", "pools", "tiers", "jobs", "why", "what happens"]), f"{name}: every part is there")
        check("reason" in text, f"{name}: the selected job has a reason")
        check("▶" in text or "→" in text or "✓" in text, f"{name}: something happens")
        terminal.press(b"?")
        check("closes it" in terminal.text(), f"{name}: ? shows the help")
        status, restored = terminal.end(lambda: os.write(terminal.fd, b"q"))
        check(status == 0 and restored, f"{name}: q gives the terminal back, exit code 0")
    for name, number in [("SIGTERM", signal.SIGTERM), ("SIGHUP", signal.SIGHUP), ("SIGINT", signal.SIGINT)]:
        terminal = Terminal(watch, 80, 24)
        terminal.pump(1.5)
        status, restored = terminal.end(lambda: os.kill(terminal.pid, number))
        check(restored, f"{name} gives the terminal back")
    terminal = Terminal(watch, 80, 24)
    terminal.pump(1.5)
    os.close(terminal.fd)
    check(ended(terminal.pid, 6), "a terminal that goes away ends it")
    terminal = Terminal(watch, 40, 10)
    terminal.pump(1.5)
    check("too small" in " ".join(terminal.text().split()), "a terminal that is too small is told")
    status, restored = terminal.end(lambda: os.write(terminal.fd, b"q"))
    check(status == 0 and restored, "and given back")
    terminal = Terminal(watch, 120, 40, NO_COLOR="1")
    terminal.pump(2)
    check(b"38;5;" not in terminal.bytes, "NO_COLOR turns colours off")
    terminal.end(lambda: os.write(terminal.fd, b"q"))


def main():
    folder = tempfile.mkdtemp(prefix="osprey-watch-")
    state, file = os.path.join(folder, "my-state"), os.path.join(folder, "jobs.jsonl")
    with open(file, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(job) + "\n" for job in jobs())
    serve = [OSPREY, "local", "serve", "--state", state, "--port", "0", "--nodes", "6"]
    served = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.time() + 20
        while not os.path.exists(os.path.join(state, "aws.env")) and time.time() < until:
            time.sleep(0.1)
        sent = [OSPREY, "submit-job", "--local", state, "--from", file]
        subprocess.run(sent, stdout=subprocess.DEVNULL, check=True, timeout=60)
        looked_at(state)
    finally:
        served.send_signal(signal.SIGINT)
        served.wait(30)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"watch: {len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
