import fc from 'fast-check';

type Lengths = { readonly minLength?: number; readonly maxLength?: number };

// Mostly characters that people write, and any character of Unicode except lone surrogates.
const codePoint = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0x20, max: 0x7e }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 0xd7ff }) },
  { weight: 1, arbitrary: fc.integer({ min: 0xe000, max: 0x10ffff }) },
);

/**
 * Any text. fc.string with `binary` units would first build a table of a million characters, which takes nearly a
 * second.
 */
export function anyText(lengths: Lengths = {}): fc.Arbitrary<string> {
  return fc.array(codePoint, lengths).map((points) => String.fromCodePoint(...points));
}

/** Any JSON value. Its strings and keys are made by `anyText`. */
export function anyJson(): fc.Arbitrary<unknown> {
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constant(null),
      fc.boolean(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      anyText(),
      fc.array(tie('value')),
      fc.dictionary(anyText(), tie('value')),
    ),
  }));
  return value;
}
