//#region src/arcLayout.ts
function e(e, o, c, u) {
	let d = [...o].sort((e, r) => t(e) - t(r) || n(e) - n(r) || e.dependent - r.dependent), f = e.map((e, t) => r(t, d)), h = e.map((e, t) => i(e, f[t] ?? [], c));
	a(h, d, f, c.port);
	let g = Math.max(0, c.limit - m(h)) / h.length, _ = h.map((e) => e + Math.min(g, c.spread)), v = m(_) > c.limit ? c.margin : 0, y = s(_, c.limit - 2 * v), b = Math.max(...y.map((e) => m(_.slice(e.start, e.stop)))) + 2 * v, x = y.map((e) => l(e, d, f, _, c.port, v, b));
	return u ? x.map(p) : x;
}
function t(e) {
	return e.head === null ? 0 : Math.abs(e.head - e.dependent);
}
function n(e) {
	return Math.min(e.head ?? e.dependent, e.dependent);
}
function r(e, t) {
	let n = t.filter((t) => t.dependent === e || t.head === e), r = (t) => t.dependent === e ? t.head : t.dependent, i = n.filter((t) => (r(t) ?? e) < e), a = n.filter((t) => (r(t) ?? e) > e);
	return [
		...i,
		...n.filter((e) => r(e) === null),
		...a.reverse()
	];
}
function i(e, t, n) {
	let r = t.length - 1, i = [e, n.port * r];
	return t.forEach((e, t) => {
		let a = Math.max(n.root, e.mark);
		e.head === null && i.push(a + n.port * Math.abs(2 * t - r));
	}), Math.max(...i) + n.gap;
}
function a(e, t, r, i) {
	for (let a of t) {
		if (a.head === null) continue;
		let t = n(a), s = Math.max(a.head, a.dependent), c = m(e.slice(t + 1, s)) + ((e[t] ?? 0) + (e[s] ?? 0)) / 2, l = o(a, r[s] ?? [], i) - o(a, r[t] ?? [], i), u = a.mark - c - l;
		if (!(u <= 0)) for (let n = t; n <= s; n += 1) e[n] += u / (s - t);
	}
}
function o(e, t, n) {
	return n * (t.indexOf(e) - (t.length - 1) / 2);
}
function s(e, t) {
	let n = c(e, t).length, r = Math.min(m(e) / n, t);
	for (; c(e, r).length > n;) r = Math.min(1.02 * r, t);
	return c(e, r);
}
function c(e, t) {
	let n = [0], r = 0;
	return e.forEach((e, i) => {
		r && r + e > t && (n.push(i), r = 0), r += e;
	}), n.map((t, r) => ({
		start: t,
		stop: n[r + 1] ?? e.length
	}));
}
function l(e, t, n, r, i, a, s) {
	let c = /* @__PURE__ */ new Map(), l = a;
	for (let t = e.start; t < e.stop; t += 1) {
		let e = r[t] ?? 0;
		c.set(t, l + e / 2), l += e;
	}
	let f = (t, r) => {
		let l = c.get(r);
		return l === void 0 ? r < e.start ? a : s - a : l + o(t, n[r] ?? [], i);
	}, p = t.flatMap((e) => e.head !== null && (c.has(e.head) || c.has(e.dependent)) ? [{
		arc: e,
		head: e.head
	}] : []), m = d(p.map(({ arc: t, head: n }) => u(t.dependent, n, e)));
	return {
		places: c,
		bows: p.map(({ arc: e, head: t }, n) => ({
			arc: e,
			level: m[n] ?? 1,
			head: f(e, t),
			dependent: f(e, e.dependent),
			elsewhere: [t, e.dependent].find((e) => !c.has(e)) ?? null
		})),
		roots: t.filter((e) => e.head === null && c.has(e.dependent)).map((e) => ({
			arc: e,
			x: f(e, e.dependent)
		})),
		width: s,
		levels: Math.max(0, ...m)
	};
}
function u(e, t, n) {
	return [Math.max(Math.min(e, t), n.start - 1), Math.min(Math.max(e, t), n.stop)];
}
function d(e) {
	let t = e.map((e, t) => t).sort((t, n) => f(e[t]) - f(e[n]) || t - n), n = [], r = Array(e.length).fill(0);
	for (let i of t) {
		let [t, a] = e[i] ?? [0, 0], o = n.filter((e) => e.left < a && t < e.right), s = o.filter((e) => t <= e.left && e.right <= a), c = new Set(o.map((e) => e.level)), l = 1 + Math.max(0, ...s.map((e) => e.level));
		for (; c.has(l);) l += 1;
		n.push({
			left: t,
			right: a,
			level: l
		}), r[i] = l;
	}
	return r;
}
function f(e) {
	return e ? e[1] - e[0] : 0;
}
function p(e) {
	let { width: t } = e;
	return {
		...e,
		places: new Map([...e.places].map(([e, n]) => [e, t - n])),
		bows: e.bows.map((e) => ({
			...e,
			head: t - e.head,
			dependent: t - e.dependent
		})),
		roots: e.roots.map(({ arc: e, x: n }) => ({
			arc: e,
			x: t - n
		}))
	};
}
function m(e) {
	return e.reduce((e, t) => e + t, 0);
}
//#endregion
//#region src/words.ts
var h = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
function g(e) {
	return e.replace(h, (e) => "‌‍".includes(e) ? e : _(e.codePointAt(0) ?? 0));
}
function _(e) {
	let t = e.toString(16);
	return e < 256 ? `\\x${t.padStart(2, "0")}` : e < 65536 ? `\\u${t.padStart(4, "0")}` : `\\U${t.padStart(8, "0")}`;
}
var v = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}\p{Script=Hanifi_Rohingya}\p{Script=Mandaic}\p{Script=Samaritan}]/u;
function y(e) {
	let t = /\p{L}/u.exec(e);
	return t !== null && v.test(t[0]);
}
function b(e) {
	let t = e.filter((e) => /\p{L}/u.test(e));
	return 2 * t.filter(y).length > t.length;
}
//#endregion
export { g as escaped, e as layOut, b as runRightToLeft };
