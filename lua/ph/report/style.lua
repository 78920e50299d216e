--- The style sheet of report pages. Colours are variables, chosen for light and for dark; series colours are told apart
-- with any colour vision (after Okabe and Ito, lightness adjusted to the ground).

return [[
:root{--bg:#fbfbfa;--card:#fff;--ink:#1d2126;--soft:#5c6670;--line:#dfe3e6;--code:#f1f3f4;--good:#0b6b43;
--good-bg:#dcf3e7;--bad:#a32316;--bad-bg:#fbe3df;
--open:#7a5200;--open-bg:#fcf0d2;--s1:#0072b2;--s2:#d55e00;--s3:#00875f;--s4:#b8558f;--s5:#b97f00;--s6:#2f9bd6;
--s7:#3d3d3d;--s8:#8a8a8a}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2024;--ink:#e7eaec;--soft:#9da7b0;--line:#333a41;
--code:#262b30;--good:#7fdcb1;--good-bg:#143527;
--bad:#ff9d8f;--bad-bg:#452019;--open:#f2cd7b;--open-bg:#3d3013;--s1:#56a9e0;--s2:#f08b46;--s3:#37c592;--s4:#e08fbf;
--s5:#e9b440;--s6:#8fcdf0;--s7:#d8d8d8;--s8:#989898}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;-webkit-text-size-adjust:100%}
main{max-width:1080px;margin:0 auto;padding:24px 20px 64px}
h1{font-size:1.9rem;line-height:1.2;margin:.4em 0 .1em}
h2{font-size:1.25rem;margin:2.2em 0 .6em;padding-bottom:.25em;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:0}
p{margin:.5em 0}
.top p{margin:0}
.quiet,figcaption{color:var(--soft);font-size:.9rem}
code,pre{font:.86em/1.5 ui-monospace,"SFMono-Regular",Menlo,Consolas,"Liberation Mono",monospace}
code{overflow-wrap:anywhere}
pre{background:var(--code);padding:12px 14px;border-radius:8px;overflow-x:auto}
pre code{overflow-wrap:normal;font-size:1em}
.banner{border-radius:10px;padding:14px 18px;margin:18px 0;border-left:6px solid}
.banner strong{font-size:1.15rem}
.banner p{margin:.25em 0 0}
.good{color:var(--good);background:var(--good-bg)}
.bad,.alert{color:var(--bad);background:var(--bad-bg)}
.open{color:var(--open);background:var(--open-bg)}
.plain{color:var(--soft);background:var(--code)}
.badge{display:inline-block;padding:.1em .6em;border-radius:1em;font-size:.82rem;font-weight:600;white-space:nowrap}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,200px),1fr));gap:10px 24px;margin:14px 0}
.facts dt{color:var(--soft);font-size:.82rem}
.facts dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:10px;background:var(--card);margin:12px 0}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:7px 12px;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:600;white-space:nowrap}
td{white-space:nowrap}
td code{overflow-wrap:normal}
td.wide{white-space:normal;min-width:12em}
th.n,td.n{text-align:right}
tbody tr:last-child td{border-bottom:0}
.rules{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,460px),1fr));gap:14px}
.rule{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;min-width:0}
.rule header{display:flex;justify-content:space-between;align-items:baseline;gap:12px}
.formula{margin:.35em 0 .5em}
.formula code{color:var(--soft)}
.leaves{display:grid;grid-template-columns:minmax(0,1fr) auto auto;gap:4px 12px;align-items:baseline;font-size:.9rem;
font-variant-numeric:tabular-nums}
.leaves .nums{text-align:right}
.reason{color:var(--open);font-size:.9rem}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr));gap:16px}
figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 14px 10px;
min-width:0}
figure>svg{display:block;width:100%;height:auto;margin-top:6px}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:.86rem;margin:.2em 0 .4em}
.key{display:inline-flex;align-items:center;gap:6px}
.key svg{width:13px;height:13px}
svg .grid{stroke:var(--line);stroke-width:1}
svg .axis{stroke:var(--soft);stroke-width:1}
svg text{fill:var(--soft);font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
svg text.label{fill:var(--ink)}
.line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}
.whisker{fill:none;stroke:currentColor;stroke-width:1.2}
.run{opacity:.45}
.s1{color:var(--s1);fill:var(--s1)}
.s2{color:var(--s2);fill:var(--s2)}
.s3{color:var(--s3);fill:var(--s3)}
.s4{color:var(--s4);fill:var(--s4)}
.s5{color:var(--s5);fill:var(--s5)}
.s6{color:var(--s6);fill:var(--s6)}
.s7{color:var(--s7);fill:var(--s7)}
.s8{color:var(--s8);fill:var(--s8)}
details{margin:10px 0}
summary{cursor:pointer;color:var(--soft)}
@media(max-width:520px){
main{padding:14px 14px 48px}
h1{font-size:1.5rem}
.facts{grid-template-columns:repeat(2,minmax(0,1fr))}
svg text{font-size:15px}
svg tspan{font-size:11px}
th,td{padding:6px 9px}
.leaves{grid-template-columns:1fr auto}
.leaves .at{grid-column:1/-1;margin-top:4px}
.leaves .nums{text-align:left}
}
@media print{details{display:none}.scroll,.rule,figure{break-inside:avoid}}
]]
