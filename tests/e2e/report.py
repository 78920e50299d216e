#!/usr/bin/env python3
"""`phrun report` from outside: what is on the page, and how it looks in headless Chromium at desktop and phone width.

Usage: report.py [PHRUN]   (default: build/phrun of the source tree; also $PHRUN). SHOTS=DIR keeps the screenshots."""
import os, re, shutil, struct, subprocess, sys, tempfile, unittest, zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PHRUN = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 and os.path.exists(sys.argv[1]) else os.environ.get("PHRUN", os.path.join(ROOT, "build", "phrun")))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

SPEC = '''local ph = require "ph"
local block = {}
function block.ph(z) return ph.damping { 8, step = 0.1 } * (ph.cayley { 8 } * z) + 0.1 * ph.linear(8)(ph.tanh(ph.affine(8)(z))) end
function block.resnet(z) return z + ph.linear(8)(ph.tanh(ph.affine(8)(z))) end
return ph.experiment {
  name = "page", note = "Does <the> net learn & how fast does its state grow?",
  task = ph.task.circles { classes = 4, width = 8, split = { train = 64, val = 32, test = 32 } },
  model = function(cell) return { ph.stream { depth = cell.depth, block = block[cell.family] }, ph.affine(4) } end,
  grid = { family = { "ph", "resnet" }, depth = { 2, 4, 8 }, seed = { 0, 1, 2 } },
  select = { lr = { 1e-2, 3e-2 } }, train = ph.adam { epochs = 3, batch = 32 },
  measure = { ph.growth(), ph.gradient_envelope(), ph.port_budget() },
  rules = {
    ph.rule { "learns", ph.every { { ph.mean { "test.accuracy" }, ">=", 0.2 }, family = "*", depth = "*" }, note = "chance is 0.25" },
    ph.rule { "slow growth", ph.every { { ph.rank { ph.mean { "growth" }, family = "ph" }, "==", 1 }, depth = ph.at_least(4) } },
    ph.category { "both", when = ph.all { "learns", "slow growth" }, holds = true },
    ph.category { "mixed" },
  },
  predictions = { ph.prediction { "growth of ph at depth 8", ph.mean { "growth", family = "ph", depth = 8 }, band = { 0.5, 2 }, paper = 1.3 },
                  ph.prediction { "accuracy", ph.mean { "test.accuracy" }, at_least = 0.99 } },
}
'''


def phrun(cwd, *words):
    return subprocess.run([PHRUN, *words], cwd=cwd, capture_output=True, text=True, timeout=300)


def chromium(*words):
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + home, *words], capture_output=True, text=True, timeout=120)


def pixels(path):
    """Width, height and rows of a PNG with 8-bit RGB or RGBA."""
    with open(path, "rb") as f:
        data = f.read()
    width, height, _, color = struct.unpack(">IIBB", data[16:26])
    raw, at = b"", 8
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        raw += data[at + 8:at + 8 + n] if kind == b"IDAT" else b""
        at += 12 + n
    return width, height, color, zlib.decompress(raw)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.at = tempfile.mkdtemp()
        with open(cls.at + "/page.lua", "w") as f:
            f.write(SPEC)
        for words in (("lock", "page.lua"), ("run", "page.lua", "-q"), ("report", "page.lua")):
            p = phrun(cls.at, *words)
            assert p.returncode == 0, (words, p.stdout[-1500:], p.stderr)
        cls.dir = cls.at + "/experiments/page"
        with open(cls.dir + "/report.html") as f:
            cls.html = f.read()
        with open(cls.dir + "/report.md") as f:
            cls.md = f.read()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.at)

    def test_every_part_is_there_in_both(self):
        for word in ("Verdict: ", "Plan", "Rules", "learns", "slow growth", "Predictions", "hit", "missed", "Deviations", "Figures", "Grid", "Provenance", "18 cells", "36 of 36"):
            self.assertIn(word, self.html)
            self.assertIn(word, self.md)
        self.assertIn("Does &lt;the&gt; net learn &amp; how", self.html)
        self.assertGreaterEqual(self.html.count("<svg viewBox=\"0 0 460"), 5)

    def test_it_needs_nothing_from_outside(self):
        self.assertIsNone(re.search(r"https?://|<script|<link|<img|url\(|@import", self.html.split("<details>")[0]))

    def test_the_same_results_give_the_same_page(self):
        self.assertEqual(0, phrun(self.at, "report", "experiments/page").returncode)
        with open(self.dir + "/report.html") as f:
            self.assertEqual(self.html, f.read())

    def test_what_was_tampered_with_shows_no_verdict(self):
        copy = self.at + "/copy"
        shutil.copytree(self.dir, copy)
        with open(copy + "/runs/" + sorted(os.listdir(copy + "/runs"))[0], "r+b") as f:
            f.seek(-9, os.SEEK_END)
            f.write(b"x")
        self.assertEqual(3, phrun(self.at, "report", "copy").returncode)  # the page that is there stays
        self.assertEqual(0, phrun(self.at, "report", "copy", "--out", "other").returncode)
        with open(self.at + "/other/report.html") as f:
            text = f.read()
        self.assertIn("Tampered: there is no verdict", text)
        self.assertNotIn("Verdict: ", text)

    def test_a_directory_without_registration_is_reported_as_such(self):
        with open(self.at + "/free.lua", "w") as f:
            f.write(SPEC.replace('"page"', '"free"'))
        self.assertEqual(0, phrun(self.at, "run", "free.lua", "-q", "depth=2").returncode)
        self.assertEqual(0, phrun(self.at, "report", "experiments/free").returncode)
        with open(self.at + "/experiments/free/report.html") as f:
            self.assertIn("Not registered", f.read())

    def test_wrong_words_end_in_one_line(self):
        for words in (("report",), ("report", "nowhere"), ("report", self.at)):
            p = phrun(self.at, *words)
            self.assertNotEqual(0, p.returncode)
            self.assertEqual(1, p.stderr.count("\n"), p.stderr)

    @unittest.skipUnless(CHROMIUM, "no chromium here: the look of the page is not tested")
    def test_nothing_sticks_out_at_any_width(self):
        probe = "<script>addEventListener('load',()=>{const d=document.documentElement;document.title='W'+d.scrollWidth+' C'+d.clientWidth})</script></body>"
        with open(self.at + "/probe.html", "w") as f:
            f.write(self.html.replace("</body>", probe))
        for width in (1280, 768, 500):  # headless Chromium makes no window below 500
            out = chromium("--window-size=%d,900" % width, "--virtual-time-budget=2000", "--dump-dom", "file://" + self.at + "/probe.html").stdout
            scroll, client = map(int, re.search(r"<title>W(\d+) C(\d+)", out).groups())
            self.assertLessEqual(scroll, client, "at width %d" % width)
        frame = '<body style="margin:0"><iframe id="f" style="border:0;width:%dpx;height:800px" srcdoc="%s"></iframe><script>addEventListener("load",()=>{const d=document.getElementById("f").contentDocument.documentElement;document.title="W"+d.scrollWidth+" C"+d.clientWidth})</script>'
        for width in (390, 320):
            with open(self.at + "/frame.html", "w") as f:
                f.write(frame % (width, self.html.replace("&", "&amp;").replace('"', "&quot;")))
            out = chromium("--window-size=600,900", "--virtual-time-budget=2000", "--dump-dom", "file://" + self.at + "/frame.html").stdout
            scroll, client = map(int, re.search(r"<title>W(\d+) C(\d+)", out).groups())
            self.assertLessEqual(scroll, client, "at width %d" % width)

    @unittest.skipUnless(CHROMIUM, "no chromium here: the look of the page is not tested")
    def test_it_is_drawn_in_light_and_in_dark(self):
        shots = os.environ.get("SHOTS", self.at)
        grounds = {}
        for scheme, value in (("light", 1), ("dark", 0)):
            for width in (1280, 390):
                path = "%s/report-%d-%s.png" % (shots, width, scheme)
                chromium("--blink-settings=preferredColorScheme=%d" % value, "--window-size=%d,1600" % width, "--screenshot=" + path, "file://" + self.dir + "/report.html")
                w, h, color, raw = pixels(path)
                self.assertEqual((width, 1600), (w, h))
                self.assertGreater(len(set(raw)), 60, "the page is blank")
                grounds[scheme] = raw[1]
        self.assertGreater(grounds["light"], 200)
        self.assertLess(grounds["dark"], 60)


if __name__ == "__main__":
    unittest.main()
