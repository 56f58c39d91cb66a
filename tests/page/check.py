"""Renders pages of `osprey simulate --html` in headless Chromium and looks at them.

python3 tests/page/check.py FOLDER      pictures and pages go there
"""
import base64, json, os, pathlib, subprocess, sys, tempfile, urllib.request

OSPREY = os.environ["OSPREY"]
TRACE = "tests/simulator/traces/itp_c06_meta.csv"
# A small cluster on which everything happens, a trace whose GPUs are counted, and one with many runs on nodes.
PAGES = {
    "small": ["--nodes", "6", "--jobs", "90", "--seed", "7", "--spot-nodes", "2", "--reclaims-per-day", "4",
              "--load", "1.1", "--strategy", "fifo,dive,backfill"],
    "counted": ["--trace", TRACE, "--nodes", "12", "--priority-column", "priority_python",
                "--strategy", "fifo,easy,priority-easy,dive,backfill,batch-fairshare"],
    "large": ["--trace", TRACE, "--nodes", "12", "--placement", "node", "--strategy", "easy,srtf,backfill"],
}
VIEWS = {"desktop-light": (1280, "light"), "desktop-dark": (1280, "dark"), "phone": (390, "light"),
         "phone-dark": (390, "dark")}
BYTES_MAX = 3_000_000
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]
# What must be there on a page, and where nodes matter.
SELECTORS = ["h1", ".lead", "dl.tiles", "#figures table", "#waits .curve", "#waiting .fill", "#used .fill", "footer pre"]
NODES = ["#nodes svg path"]

# Gives what is wrong: what is missing or invisible, what is too wide, texts of one axis that overlap.
LOOK = """
const wrong = [];
for (const selector of arguments[0]) {
  const box = document.querySelector(selector)?.getBoundingClientRect();
  if (!box || box.width < 1 && box.height < 1) wrong.push(`${selector} can't be seen`);
}
const page = document.documentElement;
if (page.scrollWidth > page.clientWidth) wrong.push(`the page is ${page.scrollWidth} wide on ${page.clientWidth}`);
for (const axis of document.querySelectorAll('.x, .y')) {
  const boxes = [...axis.children].filter((tick) => tick.offsetWidth).map((tick) => [tick, tick.getBoundingClientRect()]);
  for (const [index, [tick, a]] of boxes.entries())
    for (const [other, b] of boxes.slice(index + 1))
      if (a.left < b.right && b.left < a.right && a.top < b.bottom - 1 && b.top < a.bottom - 1)
        wrong.push(`the ticks ${tick.textContent} and ${other.textContent} overlap`);
}
for (const of of document.querySelectorAll('[src], link[href], script[src]'))
  if (!(of.src || of.href).startsWith('data:')) wrong.push(`${of.outerHTML.slice(0, 80)} is not part of the page`);
return wrong;
"""


class Browser:
    """Chromium, driven over WebDriver."""

    def __init__(self, folder):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True)
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.url = "http://127.0.0.1:" + line.rsplit(" ", 1)[1].strip().rstrip(".")
                break
        options = {"args": [*FLAGS, f"--user-data-dir={folder}"], "binary": "/usr/bin/chromium"}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = ""
        self.session = "/session/" + self.post("/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def post(self, path, body):
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + self.session + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def cdp(self, command, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script, *arguments):
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def open(self, page, width, scheme):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.post("/url", {"url": page.as_uri()})

    def complaints(self):
        return [entry["message"] for entry in self.post("/se/log", {"type": "browser"})]

    def picture(self, path, whole=True):
        path.write_bytes(base64.b64decode(self.cdp("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    def close(self):
        try:
            request = urllib.request.Request(self.url + self.session, method="DELETE")
            urllib.request.urlopen(request, timeout=30).close()
        finally:
            self.driver.terminate()
            self.driver.wait()


def hover(browser):
    """What the pointer is told over the curves of waits."""
    return browser.run("""
        const area = document.querySelector('#waits .area'), box = area.getBoundingClientRect();
        area.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2, clientY: box.top + 9}));
        return area.querySelector('.tip')?.textContent ?? '';""")


def check(browser, folder, name, arguments):
    page = (folder / f"{name}.html").resolve()
    subprocess.run([OSPREY, "simulate", *arguments, "--html", str(page)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    wrong = [f"{page.stat().st_size} bytes"] if page.stat().st_size > BYTES_MAX else []
    selectors = SELECTORS + ([] if name == "counted" else NODES)
    for view, (width, scheme) in VIEWS.items():
        browser.open(page, width, scheme)
        found = browser.run(LOOK, selectors) + browser.complaints()
        told = hover(browser)
        if "waited at most" not in told:
            found.append(f"the pointer is told `{told}`")
        wrong += [f"{view}: {fault}" for fault in found]
        browser.run("document.querySelector('#waits .area').dispatchEvent(new PointerEvent('pointerleave'));")
        browser.picture(folder / f"{name}-{view}.png")
    print(f"{name}: {page.stat().st_size:,} bytes, {'; '.join(wrong) or 'good'}")
    return not wrong


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        try:
            good = [check(browser, folder, name, arguments) for name, arguments in PAGES.items()]
        finally:
            browser.close()
    sys.exit(0 if all(good) else 1)


main()
