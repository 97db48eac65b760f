/**
 * The program that checks invoices knows the rules by itself: here it is held against the service's own, which it may not
 * import, over all that the two must make the same of.
 */
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { expect } from 'chai';
import fc from 'fast-check';
import { parseEventTime } from '../../../../core/foundation/time/instant.ts';
import { WINDOW_SIZES, windowAt } from '../../../../core/foundation/time/window.ts';
import { canonicalNumber } from '../../../../core/metering/canonical-number.ts';
import { properties as readProperties } from '../../../../core/metering/event-text.ts';
import { compileExpression } from '../../../../core/metering/expression.ts';
import { parseQuantity, toScaled } from '../../../../core/metering/quantity.ts';
import { samples } from '../../../support/samples.ts';
import { VERIFIER, verifier } from '../../../support/verifier.ts';

function tried<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

describe('the verifier of invoices', () => {
  it('is one file that imports nothing but parts of node, and no network', () => {
    const source = readFileSync(VERIFIER, 'utf8');
    const imported = [...source.matchAll(/\bfrom '([^']+)'|\bimport\(([^)]*)\)|\brequire\(([^)]*)\)/g)].map(
      ([, name, dynamic, required]) => name ?? dynamic ?? required,
    );
    expect(imported).to.have.members(['node:crypto', 'node:fs', 'node:readline', 'node:url']);
    for (const name of imported) expect(builtinModules).to.include(name!.slice('node:'.length));
    expect(source).to.not.match(/\bfetch\(|\bWebSocket\b|\bprocess\.(?:binding|getBuiltinModule)\b/);
  });

  const numberText = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.tuple(fc.bigInt(), fc.integer({ min: -60, max: 60 })).map(([digits, exponent]) => `${digits}e${exponent}`),
    fc.tuple(fc.bigInt(), fc.nat(), fc.nat(40)).map(([whole, rest, zeros]) => `${whole}.${'0'.repeat(zeros)}${rest}`),
    fc.constantFrom(
      '0',
      '-0',
      '-0.0',
      '0e5',
      '1e400',
      '1e-400',
      '999999999999999999999999',
      '1e24',
      '0.5e-24',
      '4e-25',
    ),
  );

  it('reads a number as meters do', () => {
    const text = fc.oneof(
      numberText,
      fc.constantFrom('', '.', '-', ' 1 ', '+5', '5.', '.5', '1_000', '0x1f', 'NaN', '1,5'),
    );
    fc.assert(
      fc.property(text, (written) => {
        const ours = parseQuantity(written);
        expect(verifier.quantity(written), written).to.equal(typeof ours === 'string' ? undefined : toScaled(ours));
      }),
      { numRuns: samples(2_000) },
    );
  });

  it('writes a number as filters and distinct values do', () => {
    fc.assert(
      fc.property(
        numberText.filter((text) => !/^-?\d+\.?\d*e\+/.test(text)),
        (written) => {
          expect(verifier.canonical(written)).to.equal(canonicalNumber(written));
        },
      ),
      { numRuns: samples(2_000) },
    );
  });

  it('computes expressions as meters do', () => {
    const leaf = fc.oneof(
      fc.constantFrom('a', 'b', 'missing', 't', '2', '0.1', '1e3', '7'),
      fc.integer({ min: 0, max: 99 }).map(String),
    );
    const { expression } = fc.letrec<{ expression: string }>((tie) => {
      const inner = tie('expression');
      return {
        expression: fc.oneof(
          { depthSize: 'small', withCrossShrink: true },
          leaf,
          fc.tuple(inner, fc.constantFrom('+', '-', '*', '/'), inner).map(([a, op, b]) => `(${a} ${op} ${b})`),
          fc
            .tuple(inner, fc.constantFrom('+', '-', '*'), inner, inner)
            .map(([a, op, b, c]) => `${a} ${op} ${b} * ${c}`),
          fc.tuple(fc.constantFrom('min', 'max'), inner, inner).map(([name, a, b]) => `${name}(${a}, ${b})`),
          fc
            .tuple(fc.constantFrom('floor', 'ceil', 'round', 'abs', '-', 'double'), inner)
            .map(([f, a]) => `${f}(${a})`),
          fc
            .tuple(inner, fc.constantFrom('<', '<=', '>', '>=', '==', '!='), inner, inner, inner)
            .map(([a, op, b, yes, no]) => `(${a} ${op} ${b} && !(${no} > 3) || kind == 'x' ? ${yes} : ${no})`),
        ),
      };
    });
    const value = fc.oneof(
      fc.constantFrom('1.5', '-2', '0', '1e-25', 'many', '3'),
      fc.integer({ min: -1000, max: 1000 }).map(String),
    );
    fc.assert(
      fc.property(expression, value, value, fc.constantFrom('x', 'y'), (text, a, b, kind) => {
        const compiled = tried(() => compileExpression(`${text} + a * 0`));
        if (compiled === undefined) return;
        const event = { a, b, t: '4', kind };
        const source = readProperties(JSON.stringify(event));
        const ours = compiled.evaluate(source);
        const theirs = verifier.compiledExpression(`${text} + a * 0`)(new Map(Object.entries(event)));
        expect(theirs, `${text} of ${a} and ${b}`).to.equal(
          ours.value === undefined ? undefined : toScaled(ours.value),
        );
      }),
      { numRuns: samples(2_000) },
    );
    for (const text of ['sqrt(a)', 'log(a)', 'a.b', '[a]', 'a +', '0x1f + a'])
      expect(() => verifier.compiledExpression(text), text).to.throw();
  });

  it('reads JSON with the text of its numbers', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const plain = (value: unknown): unknown => {
          if (value instanceof Map) return Object.fromEntries([...value].map(([key, inner]) => [key, plain(inner)]));
          if (Array.isArray(value)) return value.map(plain);
          return value !== null && typeof value === 'object' ? JSON.parse((value as { number: string }).number) : value;
        };
        expect(JSON.stringify(plain(verifier.readJson(text)))).to.equal(JSON.stringify(JSON.parse(text)));
      }),
      { numRuns: samples(500) },
    );
    expect(() => verifier.readJson('{"a":1,}')).to.throw(/no JSON/);
    expect(() => verifier.readJson('[01]')).to.throw(/no JSON/);
  });

  it('reads instants to the microsecond', () => {
    for (const text of ['2026-01-10T10:00:00Z', '2026-01-10T10:00:00.1234567+05:30', '1969-12-31T23:59:59.999999Z'])
      expect(verifier.instant(text), text).to.equal(parseEventTime(text));
  });

  it('cuts windows as the service does, over clock changes too', () => {
    const zone = fc.constantFrom(
      'UTC',
      'America/New_York',
      'Asia/Kolkata',
      'Australia/Lord_Howe',
      'Europe/Berlin',
      'America/Sao_Paulo',
    );
    const near = fc.constantFrom(
      '2026-03-08T07:00:00Z',
      '2025-11-02T06:00:00Z',
      '2026-04-04T15:00:00Z',
      '2026-10-25T01:00:00Z',
      '2018-11-04T03:00:00Z',
    );
    const at = fc.oneof(
      fc.integer({ min: Date.UTC(2015, 0), max: Date.UTC(2030, 0) }),
      fc.tuple(near, fc.integer({ min: -90_000_000, max: 90_000_000 })).map(([text, off]) => Date.parse(text) + off),
    );
    const anchor = fc.integer({ min: Date.UTC(2024, 0), max: Date.UTC(2026, 0) });
    fc.assert(
      fc.property(at, fc.constantFrom(...WINDOW_SIZES), zone, anchor, (instant, size, timezone, billing_anchor) => {
        const ours = windowAt(instant, size, { timezone, billing_anchor });
        expect(verifier.windowAt(instant, size, { timezone, anchor: billing_anchor })).to.deep.equal(ours);
      }),
      { numRuns: samples(300) },
    );
  });

  for (const [stated, computed, said] of [
    ['12.35', '12.34', 'first at decimal place 2: 5, not 4'],
    ['100', '99', 'first at digit 1 of 3 before the point: 1, not 0'],
    ['1', '-1', 'the sign differs'],
    ['1.5', '1.50', ''],
  ] as const)
    it(`names the first digit that differs: ${stated} and ${computed}`, () => {
      expect(verifier.firstDifference(stated, computed)).to.equal(said);
    });
});
