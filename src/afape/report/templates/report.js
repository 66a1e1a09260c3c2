"use strict";
(function () {
  document.documentElement.classList.add("scripted");
  const data = JSON.parse(document.getElementById("report-data").textContent);

  // ---- sortable tables
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", function () {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const numeric = head.classList.contains("num");
        const key = function (row) {
          const cell = row.cells[column];
          if (!cell) return numeric ? NaN : "";
          return numeric ? parseFloat(cell.dataset.value) : cell.textContent.trim();
        };
        const rows = Array.from(table.tBodies[0].rows);
        rows.sort(function (a, b) {
          const x = key(a), y = key(b);
          let order;
          if (numeric) {
            if (isNaN(x) || isNaN(y)) return (isNaN(x) ? 1 : 0) - (isNaN(y) ? 1 : 0);  // blanks stay last
            order = x - y;
          } else {
            order = x.localeCompare(y);
          }
          return down ? -order : order;
        });
        table.tBodies[0].append(...rows);
      });
    });
  }

  // ---- print what is folded too
  window.addEventListener("beforeprint", function () {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
  });

  // ---- download of all numbers
  document.getElementById("download").addEventListener("click", function () {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(data, null, 1)], { type: "application/json" }));
    link.download = "afape-report.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  if (!data.prices) return;

  // ---- changed prices
  const prices = data.prices, policies = prices.policies, confidence = prices.confidence;
  const original = prices.fields.map(function (f) { return f.base; });

  function number(value) {  // as sentences.number in the package
    if (value === null || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    const size = Math.abs(value);
    let text;
    if (size !== 0 && (size >= 1e7 || size < 1e-4)) text = value.toExponential(3).replace(/e([+-])(\d)$/, "e$10$2");
    else if (size >= 1000) text = Math.round(value).toLocaleString("en-US");
    else text = String(Number(value.toPrecision(4)));
    return text.replace(/-/g, value < 0 ? "−" : "-");
  }
  let decimals = data.content.decimals;
  function decimalsOf(sizes) {  // as sentences.decimals_of in the package
    const largest = Math.max(0, ...sizes.filter(function (v) { return Number.isFinite(v); }).map(Math.abs));
    return largest > 0 ? Math.min(Math.max(3 - Math.floor(Math.log10(largest)), 0), 12) : 0;
  }
  function cost(value) {  // as sentences.cost in the package
    if (value === null || !Number.isFinite(value)) return number(value);
    const text = value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    return /[1-9]/.test(text) ? text.replace("-", "−") : text.replace("-", "");
  }
  function percent(share) {  // as sentences.percent in the package
    if (Math.abs(share) < 1e-9 || Math.abs(share - 1) < 1e-9) return Math.round(100 * share) + " %";
    if (share > 0 && 100 * share < 0.05) return "< 0.1 %";
    if (share < 1 && 100 * (1 - share) < 0.05) return "> 99.9 %";
    return (100 * share).toFixed(1) + " %";
  }
  function chance(drawn) { return percent(Math.min(Math.max(drawn, 1e-6), 1 - 1e-6)); }
  function dot(a, b) { let s = 0; for (let i = 0; i < a.length; i++) s += a[i] * b[i]; return s; }

  // Student's t by the incomplete beta function, and its quantile by bisection.
  function logGamma(x) {
    const c = [76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 1.208650973866179e-3, -5.395239384953e-6];
    let y = x, t = x + 5.5, s = 1.000000000190015;
    t -= (x + 0.5) * Math.log(t);
    for (const k of c) s += k / ++y;
    return -t + Math.log(2.5066282746310005 * s / x);
  }
  function fraction(a, b, x) {
    let c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (Math.abs(d) < 1e-300 ? 1e-300 : d);
    let h = d;
    for (let m = 1; m < 1000; m++) {
      for (const t of [m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))]) {
        d = 1 + t * d; d = 1 / (Math.abs(d) < 1e-300 ? 1e-300 : d);
        c = 1 + t / c; c = Math.abs(c) < 1e-300 ? 1e-300 : c;
        h *= d * c;
      }
      if (Math.abs(d * c - 1) < 1e-14) break;
    }
    return h;
  }
  function beta(a, b, x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x));
    return x < (a + 1) / (a + b + 2) ? front * fraction(a, b, x) / a : 1 - front * fraction(b, a, 1 - x) / b;
  }
  function upperTail(t, df) {  // P(T > t) for t >= 0
    if (!Number.isFinite(df) || df > 1e6) df = 1e6;
    return 0.5 * beta(df / 2, 0.5, df / (df + t * t));
  }
  function quantile(p, df) {  // of the upper half
    let low = 0, high = 1;
    while (upperTail(high, df) > 1 - p && high < 1e12) high *= 2;
    for (let i = 0; i < 200 && high - low > 1e-12 * high; i++) {
      const middle = (low + high) / 2;
      if (upperTail(middle, df) > 1 - p) low = middle; else high = middle;
    }
    return (low + high) / 2;
  }

  // Covariance of the totals of all policies at prices x.
  function covariance(x) {
    const n = policies.length, m = x.length;
    return policies.map(function (_, a) {
      return policies.map(function (_, b) {
        let s = 0;
        for (let i = 0; i < m; i++) s += x[i] * dot(prices.covariance[a * m + i].slice(b * m, (b + 1) * m), x);
        return s;
      });
    });
  }
  function clip(value, limits) { return Math.min(Math.max(value, limits[0]), limits[1]); }

  function limitsAt(x, policy) {  // what a fixed policy pays is certain
    let paid = 0, known = 0, least = 0, largest = 0;
    prices.fields.forEach(function (f, i) { if (f.kind === "price") { paid += x[i]; known += x[i] * policy.rates[i]; } });
    for (const cell of prices.cells) {  // one per label if the shares of the labels are known
      const costs = cell.fields.map(function (i) { return i === null ? 0 : x[i]; });
      least += cell.share * Math.min(...costs); largest += cell.share * Math.max(...costs);
    }
    return policy.certain ? [known + least, known + largest] : [least, paid + largest];
  }

  // Distances to both ends of an interval, as estimators/unseen.py in the package.
  function end(plain, share, room) {
    if (share === 0) return plain;
    const half = share * Math.max(room, 0) / 2;
    return (half + Math.sqrt(half * half + (1 + share) * plain * plain)) / (1 + share);
  }
  function reach(p, value, error, df, limits, tail) {
    const plain = error > 0 ? quantile(1 - tail, df) * error : 0, z = quantile(1 - tail, Infinity);
    const share = z * z * (error > 0 ? Math.max(p.concentration - prices.light, 0) : p.concentration);
    return { plain: plain, ends: [end(plain, share, value - limits[0]), end(plain, share, limits[1] - value)] };
  }
  function excess(e, tail) {
    const found = reach(policies[e.place], e.total, e.error, e.degrees, e.limits, tail);
    return found.ends.map(function (x) { return Math.sqrt(Math.max(x * x - found.plain * found.plain, 0)); });
  }

  // Degrees of freedom at prices x: from the fourth moments of the influence values where they are known.
  function degrees(policy, variance, x) {
    if (!policy.moments || !(variance > 0)) return policy.degrees_of_freedom;
    let fourth = 0;
    for (const [i, j, k, l, sum] of policy.moments.terms) fourth += x[i] * x[j] * x[k] * x[l] * sum;
    const squares = variance / policy.moments.scale;
    return fourth > 0 ? Math.max(squares * squares / fourth, 1) : policy.degrees_of_freedom;
  }

  function estimates(x) {
    const cov = covariance(x), tail = 0.5 - confidence / 2;
    return policies.map(function (p, k) {
      let paid = 0, wrong = 0;
      prices.fields.forEach(function (f, i) { if (f.kind === "price") paid += x[i] * p.rates[i]; else wrong += x[i] * p.rates[i]; });
      const total = paid + wrong, limits = limitsAt(x, p), df = degrees(p, cov[k][k], x);
      const root = Math.sqrt(Math.max(cov[k][k], 0)), error = root > 1e-12 * Math.max(1, Math.abs(total)) ? root : 0;
      const ends = reach(p, total, error, df, limits, tail).ends;
      return { name: p.name, policy: p.policy, place: k, acquisition: paid, misclassification: wrong, total: total, error: error,
               degrees: df, limits: limits, lower: clip(total - ends[0], limits), upper: clip(total + ends[1], limits) };
    });
  }

  // Standard normal draws, the same at every call.
  const draws = (function () {
    let state = 20231106;
    function uniform() {
      state = (state + 0x6D2B79F5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296 + 1e-12;
    }
    const out = [];
    for (let i = 0; i < 10000; i++) {
      const line = new Float64Array(policies.length);
      for (let k = 0; k < line.length; k++) line[k] = Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
      out.push(line);
    }
    return out;
  })();
  function factor(cov) {  // Cholesky factor; a policy without uncertainty has a row of zeros
    const n = cov.length, L = cov.map(function () { return new Float64Array(n); });
    for (let i = 0; i < n; i++) for (let j = 0; j <= i; j++) {
      let s = cov[i][j];
      for (let k = 0; k < j; k++) s -= L[i][k] * L[j][k];
      if (i === j) L[i][i] = s > 1e-14 * Math.max(cov[i][i], 1e-300) ? Math.sqrt(s) : 0;
      else L[i][j] = L[j][j] > 0 ? s / L[j][j] : 0;
    }
    return L;
  }
  function standing(x, found) {
    const cov = covariance(x), n = found.length, L = factor(cov), pairs = [];
    for (let a = 0; a < n; a++) for (let b = a + 1; b < n; b++) {
      const variance = cov[a][a] + cov[b][b] - 2 * cov[a][b];
      pairs.push({ a: a, b: b, difference: found[a].total - found[b].total,
                   error: variance > 1e-20 * Math.max(cov[a][a], cov[b][b]) ? Math.sqrt(Math.max(variance, 0)) : 0 });
    }
    const best = new Array(n).fill(0), largest = [];
    for (const z of draws) {
      const moved = L.map(function (line) { return dot(line, z); });
      let cheapest = 0;
      for (let k = 0; k < n; k++)
        if (policies[k].enough && (!policies[cheapest].enough || found[k].total + moved[k] < found[cheapest].total + moved[cheapest])) cheapest = k;
      best[cheapest] += 1 / draws.length;
      let most = 0;
      for (const p of pairs) if (p.error > 0) most = Math.max(most, Math.abs(moved[p.a] - moved[p.b]) / p.error);
      largest.push(most);
    }
    largest.sort(function (u, v) { return u - v; });
    const tail = upperTail(largest[Math.min(Math.floor(confidence * largest.length), largest.length - 1)], Infinity);
    const level = Math.min(tail, 0.5 - confidence / 2);
    pairs.forEach(function (p, i) {
      const both = x.concat(x.map(function (v) { return -v; })), a = found[p.a], b = found[p.b];
      const limits = [a.limits[0] - b.limits[1], a.limits[1] - b.limits[0]];
      let ends;
      if (p.error > 0) {
        const half = quantile(1 - level, degrees(prices.pairs[i], p.error * p.error, both)) * p.error;
        const ea = excess(a, level), eb = excess(b, level), spread = 2 * a.error * b.error;
        const rho = spread > 0 ? Math.min(Math.max((p.error * p.error - a.error * a.error - b.error * b.error) / spread, -1), 0) : 0;
        ends = [0, 1].map(function (s) {
          return Math.sqrt(half * half + Math.max(ea[s] * ea[s] + eb[1 - s] * eb[1 - s] + 2 * rho * ea[s] * eb[1 - s], 0));
        });
      } else {
        const dense = { concentration: Math.max(policies[p.a].concentration, policies[p.b].concentration) };
        ends = reach(dense, p.difference, 0, Infinity, limits, level).ends;
      }
      p.lower = clip(p.difference - ends[0], limits); p.upper = clip(p.difference + ends[1], limits);
    });
    const ranks = found.map(function (_, k) {
      let cheaper = 0, dearer = 0;
      for (const p of pairs) {
        if (!policies[p.a].enough || !policies[p.b].enough) continue;
        if (p.upper < 0) { if (p.a === k) dearer++; if (p.b === k) cheaper++; }
        else if (p.lower > 0) { if (p.b === k) dearer++; if (p.a === k) cheaper++; }
      }
      return { lower: 1 + cheaper, upper: n - dearer, best: best[k] };
    });
    return { pairs: pairs, ranks: ranks };
  }
  const grave = data.content.doubts.some(function (d) { return d.grave; });
  const caution = grave ? " But these records do not allow a firm conclusion: see the doubts below." : "";
  function verdict(rank, policy) {
    if (policies.length === 1) return "alone";
    if (!policy.enough) return "too few rows";
    if (rank.upper === 1) return grave ? "lowest estimate, in doubt" : "cheapest";
    if (rank.lower > 1) return "not the cheapest";
    return rank.best >= 0.05 ? "perhaps the cheapest" : "unlikely to be the cheapest";
  }

  function interval(e) { return "(" + Number((100 * confidence).toPrecision(6)) + " % interval " + cost(e.lower) + " to " + cost(e.upper) + ")"; }
  function answer(found, state) {
    if (data.content.policies.length === 1) {
      const e = found[0];
      return "At these prices, “" + e.name + "” would cost " + cost(e.total) + " per run " + interval(e) + ": " +
        cost(e.acquisition) + " for acquisitions and " + cost(e.misclassification) + " for wrong labels." + caution;
    }
    const order = found.map(function (_, k) { return k; }).sort(function (a, b) { return found[a].total - found[b].total; });
    const first = found[order[0]], paid = cost(first.total) + " per run " + interval(first);
    if (order.length === 1) return "At these prices, “" + first.name + "” costs " + paid + ".";
    if (prices.too_few) return "At these prices, “" + first.name + "” has the lowest estimate, " + paid + ". " + prices.too_few;
    const open = state.pairs.filter(function (p) {
      return (p.a === order[0] || p.b === order[0]) && ((p.lower <= 0 && p.upper >= 0) || !policies[p.a].enough || !policies[p.b].enough);
    });
    if (open.length === 0 && grave)
      return "At these prices, “" + first.name + "” has the lowest estimate of " + order.length + " policies, " + paid + "." + caution;
    if (open.length === 0)
      return "At these prices, “" + first.name + "” is the cheapest of " + order.length + " policies, at " + paid + ". The next, “" + found[order[1]].name + "”, costs " + cost(found[order[1]].total) + ".";
    const names = open.map(function (p) { return "“" + found[p.a === order[0] ? p.b : p.a].name + "”"; });
    return "At these prices, “" + first.name + "” has the lowest estimate, " + paid + ", but the records cannot distinguish it from " + names.join(", ") + ".";
  }

  function put(row, target, value, text) {
    const cell = row && row.querySelector('[data-target="' + target + '"]');
    if (!cell) return;
    if (value !== null) cell.dataset.value = String(value);
    cell.textContent = text === undefined ? cost(value) : text;
  }
  function show(x) {
    const found = estimates(x), state = found.length > 1 ? standing(x, found) : { pairs: [], ranks: [{ lower: 1, upper: 1, best: 1 }] };
    const table = document.getElementById("cost-table"), bars = document.getElementById("bars");
    const bounds = data.content.policies.filter(function (p) { return p.costs.total && p.costs.total.estimate === null; });
    decimals = decimalsOf([...found.map(function (e) { return e.total; }), ...bounds.map(function (p) { return p.costs.total.bound_upper; })]);
    let full = 0;
    for (const e of found) full = Math.max(full, e.upper, e.total);
    for (const p of data.content.policies) if (p.costs.total && p.costs.total.upper !== null && p.costs.total.estimate === null) full = Math.max(full, p.costs.total.upper);
    full = 1.05 * (full > 0 ? full : 1);
    found.forEach(function (e, k) {
      const row = table.querySelector('tr[data-policy="' + e.policy + '"]');
      for (const target of ["acquisition", "misclassification", "total", "lower", "upper"]) put(row, target, e[target]);
      const rank = state.ranks[k];
      put(row, "rank", rank.lower, rank.lower === rank.upper ? String(rank.lower) : rank.lower + " to " + rank.upper);
      if (policies[k].enough) put(row, "best", rank.best, chance(rank.best));
      put(row, "verdict", null, verdict(rank, policies[k]));
      const bar = bars.querySelector('.bar[data-policy="' + e.policy + '"]'), track = bar.querySelector(".track");
      const share = function (v) { return (100 * Math.max(v, 0) / full) + "%"; };
      const parts = track.querySelectorAll(".part");
      parts[0].style.width = share(e.acquisition);
      parts[1].style.left = share(e.acquisition);
      parts[1].style.width = share(e.misclassification);
      const whisker = track.querySelector(".whisker");
      if (whisker) { whisker.style.left = share(e.lower); whisker.style.width = share(e.upper - e.lower); }
      track.setAttribute("aria-label", e.name + ": " + cost(e.acquisition) + " for acquisitions, " + cost(e.misclassification) + " for wrong labels, " + cost(e.total) + " in total");
      const soft = document.createElement("span");
      soft.className = "soft";
      soft.textContent = "(" + cost(e.lower) + " to " + cost(e.upper) + ")";
      bar.querySelector(".bar-value").replaceChildren(cost(e.total) + " ", soft);
    });
    const differences = document.getElementById("difference-table");
    if (differences) state.pairs.forEach(function (p, i) {
      const row = differences.querySelector('tr[data-pair="' + i + '"]');
      put(row, "difference", p.difference); put(row, "lower", p.lower); put(row, "upper", p.upper);
    });
    document.getElementById("answer-text").textContent = answer(found, state);
  }

  // Original content of the page, restored at the original prices.
  const first = {
    answer: document.getElementById("answer-text").textContent,
    cells: Array.from(document.querySelectorAll("#cost-table [data-target], #difference-table [data-target]")).map(function (c) { return [c, c.textContent, c.dataset.value]; }),
    bars: document.getElementById("bars").innerHTML,
  };
  const form = document.getElementById("price-form"), message = document.getElementById("price-state");
  const inputs = Array.from(form.querySelectorAll("input[data-field]"));
  function back() {
    document.getElementById("answer-text").textContent = first.answer;
    document.getElementById("bars").innerHTML = first.bars;
    for (const [cell, text, value] of first.cells) { cell.textContent = text; if (value === undefined) delete cell.dataset.value; else cell.dataset.value = value; }
    message.textContent = "These are the original prices.";
    message.classList.remove("changed");
  }
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("reset", function () {
    setTimeout(function () { for (const input of inputs) input.removeAttribute("aria-invalid"); back(); }, 0);
  });
  form.addEventListener("input", function () {
    const x = original.slice();
    let bad = 0, changed = 0;
    for (const input of inputs) {
      const i = Number(input.dataset.field), value = input.value.trim() === "" ? NaN : Number(input.value);
      const wrong = !Number.isFinite(value) || (prices.fields[i].kind === "price" && value < 0);
      if (wrong) { input.setAttribute("aria-invalid", "true"); bad++; } else { input.removeAttribute("aria-invalid"); x[i] = value; }
      if (!wrong && value !== original[i]) changed++;
    }
    if (bad) { message.textContent = "A price must be a number of 0 or more. The costs were not updated."; message.classList.add("changed"); return; }
    if (!changed) { back(); return; }
    show(x);
    message.textContent = changed + (changed === 1 ? " price differs" : " prices differ") + " from the original. Costs, intervals and ranking above are updated; the sections below are not.";
    message.classList.add("changed");
  });
})();
