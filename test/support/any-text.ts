import fc from 'fast-check';

type Lengths = { readonly minLength?: number; readonly maxLength?: number };

// Mostly what people write, and anything that Unicode has but halves of pairs.
const codePoint = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0x20, max: 0x7e }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 0xd7ff }) },
  { weight: 1, arbitrary: fc.integer({ min: 0xe000, max: 0x10ffff }) },
);

/** Any text, as fc.string makes it of 'binary' units, which first writes a table of a million characters, for nearly a second. */
export function anyText(lengths: Lengths = {}): fc.Arbitrary<string> {
  return fc.array(codePoint, lengths).map((points) => String.fromCodePoint(...points));
}

/** Any value of JSON with such texts in it, also as keys. */
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
