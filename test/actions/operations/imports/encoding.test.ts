// docs/rules/imports.md, "Files".
import { expect } from 'chai';
import fc from 'fast-check';
import { chooseEncoding, decodeText, EncodingDetector } from '../../../../actions/operations/imports/encoding.ts';
import type { FileEncoding } from '../../../../core/platform/import/mapping/record.ts';

const recognize = (bytes: Buffer, file_type: 'CSV' | 'JSON' = 'CSV') =>
  chooseEncoding(bytes, { file_type, required: null });

function* cut(bytes: Buffer, length: number): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += length) yield bytes.subarray(from, from + length);
}

async function decode(bytes: Buffer, encoding: FileEncoding, length: number): Promise<string> {
  async function* pieces() {
    yield* cut(bytes, length);
  }
  let text = '';
  for await (const piece of decodeText(pieces(), encoding)) text += piece;
  return text;
}

const toUtf16Be = (text: string) => Buffer.from(text, 'utf16le').swap16();

describe('the encoding of a file', () => {
  const text = fc.string({ unit: fc.constantFrom('a', ',', '\n', 'ü', '€', '🙂', '價'), maxLength: 40 });
  const ENCODED: [FileEncoding, (text: string) => Buffer][] = [
    ['UTF-8', (text) => Buffer.from(text)],
    ['UTF-16LE', (text) => Buffer.from(text, 'utf16le')],
    ['UTF-16BE', toUtf16Be],
  ];
  for (const [encoding, encode] of ENCODED)
    it(`is recognized, and decoded, however the file is cut: ${encoding}`, () =>
      fc.assert(
        fc.asyncProperty(text, fc.integer({ min: 1, max: 9 }), fc.boolean(), async (rest, length, hasMark) => {
          const bytes = encode(`${hasMark ? '\uFEFF' : ''}id,${rest}`);
          const detector = new EncodingDetector('CSV');
          for (const piece of cut(bytes, length)) detector.add(piece);
          expect(detector.choose(null)).to.equal(encoding);
          expect(await decode(bytes, encoding, length)).to.equal(`id,${rest}`);
        }),
      ));

  it('is Windows-1252 if bytes are not UTF-8 and none of them are', async () => {
    const bytes = Buffer.from('id,name\n1,J\xfcrgen \x80 \x93x\x94\n', 'latin1');
    expect(recognize(bytes)).to.equal('WINDOWS-1252');
    expect(await decode(bytes, 'WINDOWS-1252', 5)).to.equal('id,name\n1,Jürgen € “x”\n');
    expect(recognize(bytes, 'JSON'), 'JSON is UTF-8').to.equal('UTF-8');
    expect(recognize(Buffer.concat([Buffer.from('Zoë,'), bytes])), 'broken UTF-8').to.equal('UTF-8');
    expect(recognize(Buffer.from([0x1f, 0x8b, 8, 0, 0xff, 0xfe])), 'gzip').to.equal('UTF-8');
  });

  const OTHERS: [what: string, bytes: Buffer][] = [
    ['Cyrillic in Windows-1251', Buffer.from('id,name\n1,\xcf\xf0\xe8\xe2\xe5\xf2 \xe8\n', 'latin1')],
    ['a byte without a character', Buffer.from('id,name\n1,J\xfcrgen \x81\n', 'latin1')],
  ];
  for (const [what, bytes] of OTHERS)
    it(`is refused if it is another: ${what}`, () => {
      expect(() => recognize(bytes)).to.throw(/^file: is neither UTF-8 nor Windows-1252: save the file as UTF-8/);
      expect(chooseEncoding(bytes, { file_type: 'CSV', required: 'WINDOWS-1252' })).to.equal('WINDOWS-1252');
    });

  it('is found in large files, whose pieces end within a character and whose runs are long', () => {
    const chinese = Buffer.from('價格'.repeat(20_000));
    const detector = new EncodingDetector('CSV');
    for (const piece of cut(chinese, 16_000)) detector.add(piece);
    expect(detector.choose(null)).to.equal('UTF-8');
    const german = Buffer.from(`${'x'.repeat(40_000)}\xfc\n`, 'latin1');
    expect(recognize(german)).to.equal('WINDOWS-1252');
  });

  it('is that of the mapping, unless the file has a byte order mark', () => {
    const named = { file_type: 'CSV', required: 'WINDOWS-1252' } as const;
    expect(chooseEncoding(Buffer.from('Zoë'), named)).to.equal('WINDOWS-1252');
    expect(chooseEncoding(Buffer.from('\uFEFFZoë'), named)).to.equal('UTF-8');
  });

  it('refuses bytes without a character, by their line', async () => {
    const error = await decode(Buffer.from('a\nb\x81', 'latin1'), 'WINDOWS-1252', 9).catch((error: Error) => error);
    expect(String(error)).to.match(/line 2: is neither UTF-8 nor Windows-1252/);
    const half = await decode(Buffer.from([0x61, 0, 0x3d, 0xd8]), 'UTF-16LE', 9).catch((error: Error) => error);
    expect(String(half)).to.match(/file: is not UTF-16LE/);
  });
});
