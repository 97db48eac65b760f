/** The text of an answer that is kept: made once, as long as it is made of the same (docs/decisions/0007-cached-answers.md). */
import { expect } from 'chai';
import { z } from 'zod';
import {
  type AnswerMoment,
  type CachedAnswerRead,
  prepareText,
  serializeCachedRead,
} from '../../api/http/serialized-cache.ts';

const Shape = z.object({ name: z.string(), used: z.string().nullable(), as_of: z.iso.datetime() });

describe('the text of a kept answer', () => {
  let shown = 0;
  const show = (kept: object, moment: AnswerMoment) => {
    shown++;
    return { ...kept, ...moment };
  };
  const read = (kept: object, moment: AnswerMoment, ...others: unknown[]): CachedAnswerRead => ({
    of: [kept, ...others],
    show,
    moment,
  });
  const at = (second: number, used: string | null) => ({ as_of: `2026-01-01T00:00:0${second}.500Z`, used });
  beforeEach(() => {
    shown = 0;
  });

  it('is made once, and says what the moment says', () => {
    const kept = { name: 'a "b"' };
    expect(serializeCachedRead(Shape, read(kept, at(1, '5')))).to.equal(
      '{"name":"a \\"b\\"","used":"5","as_of":"2026-01-01T00:00:01.5Z"}',
    );
    expect(serializeCachedRead(Shape, read(kept, at(2, null)))).to.equal(
      '{"name":"a \\"b\\"","used":null,"as_of":"2026-01-01T00:00:02.5Z"}',
    );
    expect(shown).to.equal(1);
  });

  it('is there for who asks first, where it was prepared, and whatever the moment was then', () => {
    const kept = { name: 'a' };
    prepareText(Shape, read(kept, { as_of: '', used: '' }));
    expect(serializeCachedRead(Shape, read(kept, at(1, '5')))).to.equal(
      '{"name":"a","used":"5","as_of":"2026-01-01T00:00:01.5Z"}',
    );
    expect(shown).to.equal(1);
  });

  it('is made again where it is made of something else', () => {
    const kept = { name: 'a' };
    const changed = Object.assign(Object.create(null) as object, { name: 'b' });
    expect(serializeCachedRead(Shape, read(kept, at(1, '5'), changed))).to.contain('"name":"a"');
    expect(serializeCachedRead(Shape, read(kept, at(1, '5'), {}))).to.contain('"name":"a"');
    expect(shown, 'of another part').to.equal(2);
    expect(serializeCachedRead(Shape, read(changed, at(1, '5')))).to.contain('"name":"b"');
    const Other = z.object({ used: z.string() });
    expect(serializeCachedRead(Other, read(kept, at(1, '6'), {}))).to.equal('{"used":"6"}');
    expect(serializeCachedRead(Shape, read({ name: 'c' }, { as_of: at(1, '').as_of }))).to.equal(
      '{"name":"c","used":null,"as_of":"2026-01-01T00:00:01.5Z"}',
    );
  });
});
