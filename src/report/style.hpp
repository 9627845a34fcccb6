// The page's style: light, dark, phone and print.
#pragma once

namespace sylvit::report {

inline constexpr const char* page_style = R"css(
:root{color-scheme:light dark;--ink:#1b2430;--soft:#5a6675;--page:#f6f7f9;--card:#fff;--line:#dde2e8;--grid:#e6e9ee;
--accent:#0b63c5;--bad:#b3261e;--bad-page:#fdecea;--warn:#7a5200;--warn-page:#fff4d9;
--s0:#2272c3;--s1:#d9730d;--s2:#2a9d62;--s3:#a24cc1;--s4:#c0392b;--s5:#0f9aa8;--s6:#8d6e2f;--s7:#5c6bc0}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#a3aebd;--page:#11161d;--card:#19212b;--line:#2f3a47;
--grid:#263140;--accent:#6cb2ff;--bad:#ff9c94;--bad-page:#3a1c1a;--warn:#ffd27a;--warn-page:#352a10;
--s0:#5aa9f5;--s1:#f5a04f;--s2:#58cf94;--s3:#cf8df0;--s4:#f27b6d;--s5:#4cd0dd;--s6:#d0b06a;--s7:#9aa7f5}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
overflow-wrap:anywhere}
main,header,footer{max-width:1120px;margin:0 auto;padding:0 16px}
header{padding-top:28px}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:1.25rem;margin:40px 0 12px;padding-bottom:6px;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:0}
p{margin:6px 0}
h3.table{margin:22px 0 0}
.kicker{margin:0;color:var(--accent);font-weight:600;font-size:.85rem}
.verdict{font-size:1.05rem;margin:0 0 6px}
.lead{color:var(--soft);margin:0 0 14px}
.remark{color:var(--soft);font-size:.82rem}
.note{border-left:4px solid var(--accent);background:var(--card);padding:8px 12px;margin:8px 0;border-radius:0 6px 6px 0}
.note.bad{border-color:var(--bad);background:var(--bad-page)}
.note.warn{border-color:var(--warn);background:var(--warn-page)}
table{border-collapse:collapse;width:100%;background:var(--card);border:1px solid var(--line);font-size:.875rem;margin:8px 0}
th,td{padding:6px 10px;text-align:left;vertical-align:top;border-top:1px solid var(--line)}
th{overflow-wrap:normal}
td{min-width:4.5em}
td.number{min-width:0}
table.names td.head{min-width:12em}
table.names td{min-width:7.5em}
thead th{border-top:0;color:var(--soft);font-weight:600;font-size:.8rem;vertical-align:bottom}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}
td.number{white-space:nowrap}
td small{color:var(--soft);display:block;font-size:.75rem;white-space:pre-line}
table.cards td.number small{white-space:pre}
tr.failed td{background:var(--bad-page)}
.grid2{display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,330px),1fr));align-items:start}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;margin:0;padding:12px 14px;min-width:0}
.card p{color:var(--soft);font-size:.82rem;margin:2px 0 8px}
svg.plot{display:block;width:100%;max-width:440px;height:auto;margin:0 auto}
svg.plot text{font-size:10px;fill:var(--soft)}
svg.plot .grid{stroke:var(--grid);stroke-width:1}
svg.plot path{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}
svg.plot path.spread{stroke-width:1;opacity:.75}
svg.plot text.label{font-size:8.5px;fill:var(--ink)}
svg.plot .leader{stroke:var(--soft);stroke-width:.5}
svg.plot circle{fill:currentColor;stroke:currentColor;stroke-width:1.4}
svg.plot .hollow circle{fill:var(--card)}
svg.plot .neutral{color:var(--soft)}
.s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}
.s4{color:var(--s4)}.s5{color:var(--s5)}.s6{color:var(--s6)}.s7{color:var(--s7)}
.legend{list-style:none;margin:8px 0 0;padding:0;display:flex;flex-wrap:wrap;gap:2px 14px;font-size:.78rem;color:var(--soft)}
.legend li{display:flex;align-items:center;gap:6px;min-width:0}
.key{flex:none;width:16px;height:0;border-top:3px solid currentColor}
.key.dashed{border-top-style:dashed}
.key.dotted{border-top-style:dotted}
.key.mark{width:9px;height:9px;border:2px solid currentColor;border-radius:50%;background:currentColor}
.key.mark.hollow{background:none}
.bar{display:grid;grid-template-columns:1fr auto;gap:0 10px;font-size:.82rem;margin:7px 0}
.bar .value{font-variant-numeric:tabular-nums;white-space:nowrap}
.track{grid-column:1/-1;position:relative;height:12px;background:var(--grid);border-radius:3px;overflow:hidden}
.track.stack{display:flex}
.fill{height:100%;background:currentColor}
.spread{position:absolute;top:5px;height:2px;background:var(--ink);opacity:.75}
details{background:var(--card);border:1px solid var(--line);border-radius:8px;margin:8px 0;padding:0 12px}
summary{cursor:pointer;padding:9px 0;font-weight:600}
summary small{color:var(--soft);font-weight:400}
details>*:last-child{margin-bottom:12px}
code,pre{font:.82rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{white-space:pre-wrap;background:var(--card);border:1px solid var(--line);border-radius:6px;padding:10px 12px;margin:8px 0}
footer{color:var(--soft);font-size:.82rem;padding-top:28px;padding-bottom:36px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;font-size:.875rem;margin:8px 0}
dt{color:var(--soft)}dd{margin:0;min-width:0}
@media screen and (max-width:720px){
body{font-size:15px}
table.cards,table.cards tbody,table.cards tr,table.cards td{display:block}
table.cards{border:0;background:none}
table.cards thead,table.dense thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
table.cards tr{background:var(--card);border:1px solid var(--line);border-radius:8px;margin:0 0 10px;padding:6px 12px}
table.cards td{border:0;padding:3px 0;display:flex;justify-content:space-between;gap:14px;text-align:right;white-space:normal}
table.cards td::before{content:attr(data-label);color:var(--soft);text-align:left;flex:none;max-width:45%}
table.cards td.head{font-weight:600;text-align:left}
table.cards td.head::before{content:none}
table.cards td.empty{display:none}
table.cards td,table.cards td.head{min-width:0}
table.dense,table.dense tbody{display:block}
table.dense tr{display:grid;grid-template-columns:repeat(auto-fit,minmax(70px,1fr));gap:0 6px;border-top:1px solid var(--line);padding:5px 8px}
table.dense td{display:block;border:0;padding:0 0 2px;text-align:left;min-width:0;white-space:normal;font-size:.78rem}
table.dense td.head{grid-column:1/-1;font-size:.85rem}
table.dense td:not(.head)::before{content:attr(data-label);display:block;color:var(--soft);font-size:.68rem}
dl{grid-template-columns:1fr}dd{margin-bottom:6px}
}
@media print{
:root{color-scheme:light;--ink:#000;--soft:#444;--page:#fff;--card:#fff;--line:#bbb;--grid:#e2e2e2;--accent:#0b63c5;
--bad:#b3261e;--bad-page:#fdecea;--warn:#7a5200;--warn-page:#fff4d9;
--s0:#2272c3;--s1:#d9730d;--s2:#2a9d62;--s3:#a24cc1;--s4:#c0392b;--s5:#0f9aa8;--s6:#8d6e2f;--s7:#5c6bc0}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
:root{font-size:11px}
body{font-size:1rem}
th,td{padding:4px 5px}
td{min-width:7em}
.card,tr,.note{break-inside:avoid}
h2,h3,summary{break-after:avoid}
details.prints::details-content{content-visibility:visible;block-size:auto}
}
)css";

}  // namespace sylvit::report
