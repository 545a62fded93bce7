//#region src/arcLayout.ts
function e(e, o, c, l) {
	let u = [...o].sort((e, r) => t(e) - t(r) || n(e) - n(r) || e.dependent - r.dependent), p = e.map((e, t) => r(t, u)), m = e.map((e, t) => i(e, p[t] ?? [], c)), h = Math.max(0, c.limit - f(m)) / m.length, g = m.map((e) => e + Math.min(h, c.spread)), _ = f(g) > c.limit ? c.margin : 0, v = a(g, c.limit - 2 * _), y = Math.max(...v.map((e) => f(g.slice(e.start, e.stop)))) + 2 * _, b = v.map((e) => s(e, u, p, g, c.port, _, y));
	return l ? b.map(d) : b;
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
		e.head === null && i.push(n.root + n.port * Math.abs(2 * t - r));
	}), Math.max(...i) + n.gap;
}
function a(e, t) {
	let n = o(e, t).length, r = Math.min(f(e) / n, t);
	for (; o(e, r).length > n;) r = Math.min(1.02 * r, t);
	return o(e, r);
}
function o(e, t) {
	let n = [0], r = 0;
	return e.forEach((e, i) => {
		r && r + e > t && (n.push(i), r = 0), r += e;
	}), n.map((t, r) => ({
		start: t,
		stop: n[r + 1] ?? e.length
	}));
}
function s(e, t, n, r, i, a, o) {
	let s = /* @__PURE__ */ new Map(), u = a;
	for (let t = e.start; t < e.stop; t += 1) {
		let e = r[t] ?? 0;
		s.set(t, u + e / 2), u += e;
	}
	let d = (t, r) => {
		let c = s.get(r);
		if (c === void 0) return r < e.start ? a : o - a;
		let l = n[r] ?? [];
		return c + i * (l.indexOf(t) - (l.length - 1) / 2);
	}, f = t.flatMap((e) => e.head !== null && (s.has(e.head) || s.has(e.dependent)) ? [{
		arc: e,
		head: e.head
	}] : []), p = l(f.map(({ arc: t, head: n }) => c(t.dependent, n, e)));
	return {
		places: s,
		bows: f.map(({ arc: e, head: t }, n) => ({
			arc: e,
			level: p[n] ?? 1,
			head: d(e, t),
			dependent: d(e, e.dependent),
			elsewhere: [t, e.dependent].find((e) => !s.has(e)) ?? null
		})),
		roots: t.filter((e) => e.head === null && s.has(e.dependent)).map((e) => ({
			arc: e,
			x: d(e, e.dependent)
		})),
		width: o,
		levels: Math.max(0, ...p)
	};
}
function c(e, t, n) {
	return [Math.max(Math.min(e, t), n.start - 1), Math.min(Math.max(e, t), n.stop)];
}
function l(e) {
	let t = e.map((e, t) => t).sort((t, n) => u(e[t]) - u(e[n]) || t - n), n = [], r = Array(e.length).fill(0);
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
function u(e) {
	return e ? e[1] - e[0] : 0;
}
function d(e) {
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
function f(e) {
	return e.reduce((e, t) => e + t, 0);
}
//#endregion
//#region src/words.ts
var p = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
function m(e) {
	return e.replace(p, (e) => "‌‍".includes(e) ? e : h(e.codePointAt(0) ?? 0));
}
function h(e) {
	let t = e.toString(16);
	return e < 256 ? `\\x${t.padStart(2, "0")}` : e < 65536 ? `\\u${t.padStart(4, "0")}` : `\\U${t.padStart(8, "0")}`;
}
var g = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}\p{Script=Hanifi_Rohingya}\p{Script=Mandaic}\p{Script=Samaritan}]/u;
function _(e) {
	let t = /\p{L}/u.exec(e);
	return t !== null && g.test(t[0]);
}
function v(e) {
	let t = e.filter((e) => /\p{L}/u.test(e));
	return 2 * t.filter(_).length > t.length;
}
//#endregion
export { m as escaped, e as layOut, v as runRightToLeft };
