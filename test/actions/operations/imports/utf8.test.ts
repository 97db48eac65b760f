// docs/rules/imports.md, "Files".
import { expect } from 'chai';
import fc from 'fast-check';
import { decodeUtf8 } from '../../../../actions/operations/imports/utf8.ts';

async function* cut(bytes: Buffer, lengths: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (const length of lengths) {
    yield bytes.subarray(at, at + length);
    at += length;
  }
  yield bytes.subarray(at);
}

async function read(pieces: AsyncIterable<Buffer>): Promise<{ text: string; error: string | null }> {
  let text = '';
  try {
    for await (const piece of decodeUtf8(pieces)) text += piece;
    return { text, error: null };
  } catch (error) {
    return { text, error: (error as Error).message };
  }
}

const lengths = fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 20 });
const text = fc.string({ unit: fc.constantFrom('a', '\n', 'ü', '€', '🙂'), maxLength: 30 });

describe('the text of a file that comes in pieces', () => {
  it('is the same however it is cut', async () => {
    await fc.assert(
      fc.asyncProperty(text, lengths, async (whole, cuts) => {
        expect(await read(cut(Buffer.from(whole), cuts))).to.deep.equal({ text: whole, error: null });
      }),
    );
  });

  it('is all that stands before the first byte that is no UTF-8, whose line is named', async () => {
    const wrong = fc.constantFrom([0xfc], [0xff], [0x80], [0xc3, 0x28], [0xe2, 0x82], [0xf0, 0x9f, 0x99]);
    await fc.assert(
      fc.asyncProperty(text, wrong, text, lengths, async (before, bytes, after, cuts) => {
        const first = Buffer.from(`begins ${before}`);
        const file = Buffer.concat([first, Buffer.from(bytes), Buffer.from(`a${after}`)]);
        const { text: given, error } = await read(cut(file, cuts));
        expect(given).to.equal(`begins ${before}`);
        expect(error).to.match(new RegExp(`^line ${before.split('\n').length}: is not UTF-8`));
      }),
    );
  });

  it('ends within no character', async () => {
    const file = Buffer.from('a\nü').subarray(0, -1);
    expect(await read(cut(file, []))).to.deep.include({ text: 'a\n' });
    expect((await read(cut(file, []))).error).to.match(/^line 2: is not UTF-8/);
  });
});
