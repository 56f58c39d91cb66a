"""The programs that the proof runs on: started here, on loopback, and ended here by their numbers."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(port):
    """Whether somebody takes connections there."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def get(url):
    """The answer's text, or `None` while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return None


def without_ours(environment):
    """An environment without this harness's own settings: a function finds fault with a variable that it doesn't know."""
    return {name: value for name, value in environment.items() if not name.startswith("OSPREY")}


class Programs:
    """Everything that was started, in a work directory of its own."""

    def __init__(self, work, bin_dir):
        self.work, self.bin_dir, self.running = work, bin_dir, []

    def start(self, name, command, environment=None, cwd=None):
        log = open(os.path.join(self.work, f"{name}.log"), "ab")
        env = {**without_ours(os.environ), **(environment or {})}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=cwd or self.work, start_new_session=True)
        self.running.append((name, process))
        return process

    def wait_for(self, name, process, url, seconds=90):
        end = time.monotonic() + seconds
        while get(url) is None:
            assert process.poll() is None, f"{name} ended:\n{self.log(name)}"
            assert time.monotonic() < end, f"{name} does not answer:\n{self.log(name)}"
            time.sleep(0.1)

    def log(self, name):
        with open(os.path.join(self.work, f"{name}.log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def close(self):
        """Ends each with what it started, the newest first."""
        for _, process in reversed(self.running):
            self.end(process)

    @staticmethod
    def end(process):
        """Ends one with what it started."""
        try:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=15)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def local_batch(self, osprey, events_url, *more):
        """The local Batch; answers where it is, and its key."""
        state = os.path.join(self.work, "batch")
        said = os.path.join(self.work, "batch.said")
        command = [osprey, "local", "serve", "--output", "json", "--state", state, "--port", "0"]
        command += ["--event-target", events_url, *more]
        with open(said, "wb") as out, open(os.path.join(self.work, "batch.log"), "ab") as log:
            process = subprocess.Popen(command, stdout=out, stderr=log, cwd=self.work, start_new_session=True)
        self.running.append(("batch", process))
        end = time.monotonic() + 90
        while not os.path.getsize(said):
            assert process.poll() is None and time.monotonic() < end, self.log("batch")
            time.sleep(0.05)
        with open(said, encoding="utf-8") as file:
            answer = json.loads(file.readline())
        with open(answer["env"], encoding="utf-8") as file:
            lines = [line[7:].strip() for line in file if line.startswith("export ")]
        keys = dict(line.split("=", 1) for line in lines)
        return answer["endpoint"], keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"]

    def proxy(self, name, upstream):
        """A proxy that brings faults into calls; answers where it is."""
        port = free_port()
        command = [os.path.join(self.bin_dir, "microburst"), "--upstream", upstream, "--host", "127.0.0.1", "--port", str(port)]
        process = self.start(name, command)
        endpoint = f"http://127.0.0.1:{port}"
        self.wait_for(name, process, f"{endpoint}/_microburst/health")
        return endpoint

    def emulator(self, port, environment):
        """AWS, but for Batch; answers where it is, and its process."""
        settings = {"BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), **environment}
        process = self.start("emulator", [os.path.join(self.bin_dir, "ministack")], settings)
        endpoint = f"http://127.0.0.1:{port}"
        self.wait_for("emulator", process, f"{endpoint}/_ministack/health")
        return endpoint, process.pid
