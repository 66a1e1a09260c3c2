"""A headless Chromium, where there is one."""

import json
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

DESKTOP, PHONE = (1200, 900), (390, 844)


def lacking():
    """Names of missing packages; empty if browser tests can run."""
    names = [name for name in ("selenium", "axe_core_python") if find_spec(name) is None]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    names += [] if chromium else ["Chromium"]
    names += [] if shutil.which("chromedriver") else ["chromedriver"]
    return names


class Browser:
    """Opens pages offline; gives their requests and messages."""

    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        self.profile = tempfile.mkdtemp(prefix="afape-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = (
            shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        )
        flags = "headless no-sandbox disable-gpu no-first-run disable-background-networking disable-component-update"
        for flag in (*flags.split(), "disable-sync", "disable-dev-shm-usage", f"user-data-dir={self.profile}"):
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(120)
        self.driver.get("about:blank")  # ends the requests of the browser's own start page

    def size(self, size):
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, path, size=DESKTOP):
        self.size(size)
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(Path(path).absolute().as_uri())

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Addresses that the page requested."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def violations(self):
        """Accessibility violations found by axe, serious or worse."""
        import axe_core_python

        self.driver.execute_script((Path(axe_core_python.__file__).parent / "axe.min.js").read_text())
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run({resultTypes: ['violations']}).then(r => done(r.violations));"
        )
        return [
            (v["id"], v["impact"], [n["html"][:120] for n in v["nodes"][:3]])
            for v in found
            if v["impact"] in ("serious", "critical")
        ]

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)
