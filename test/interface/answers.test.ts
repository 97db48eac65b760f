/** The types of the test client are those of the routes. */
import { expect } from 'chai';
import { z } from 'zod';
import { routes } from '../../api/resources.ts';
import { ANSWERS } from '../support/answers.ts';

const known: Record<string, z.ZodType> = ANSWERS;
const nameOf = ({ method, path }: { method: string; path: string }) => `${method.toUpperCase()} ${path}`;

describe('what the test client knows of answers', () => {
  it('is of each operation, and of no other', () => {
    expect(Object.keys(known)).to.have.members(routes.map(nameOf));
  });

  for (const route of routes)
    it(`${nameOf(route)}: the shape of its route`, () => {
      const [own, shape] = [known[nameOf(route)], route.answer];
      if (shape === undefined) expect(own).to.be.instanceOf(route.file_type === undefined ? z.ZodNull : z.ZodString);
      else if (shape instanceof z.ZodArray && own instanceof z.ZodArray) expect(own.element).to.equal(shape.element);
      // A few routes build the envelope of a list where they stand.
      else if (own !== shape && shape instanceof z.ZodObject && own instanceof z.ZodObject)
        expect(Object.keys(own.shape)).to.deep.equal(Object.keys(shape.shape));
      else expect(own).to.equal(shape);
    });
});
