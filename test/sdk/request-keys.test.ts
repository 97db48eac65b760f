/**
 * Every key that the published client can send, in each of its requests: none may be refused as unknown. The requests are
 * made from its own description of them, with everything filled in.
 */
import * as models from '@flexprice/sdk/sdk/models';
import { expect } from 'chai';
import { z } from 'zod';
import { routes } from '../../api/resources.ts';
import { findIgnoredKeys } from '../../core/foundation/ignored-keys.ts';

const byName = models as unknown as Record<string, z.core.$ZodType | undefined>;

/** It names its shapes as the interface does, most of them with a prefix. */
const sentBy = (id: string) => byName[`Dto${id}$outboundSchema`] ?? byName[`${id}$outboundSchema`];

describe('the keys that the published client can send', () => {
  const known = routes.flatMap((route) => {
    const id = route.body && z.globalRegistry.get(route.body)?.id;
    const sent = id === undefined ? undefined : sentBy(id);
    return route.body && sent ? [{ name: `${route.method} ${route.path}`, body: route.body, sent }] : [];
  });

  it('are those of most bodies', () => {
    expect(known.length).to.be.greaterThan(35);
  });

  for (const { name, body, sent } of known) {
    it(`${name} takes all of them`, () => {
      const request = z.parse(sent, filledIn(sent));
      expect(Object.keys(request as object)).to.not.have.length(0);
      expect(findIgnoredKeys(body, request).filter((key) => key.is_unknown)).to.deep.equal([]);
    });
  }
});

const DEPTH_MAX = 24;

/** A value with every key, in the client's own spelling. */
function filledIn(shape: z.core.$ZodType, depth = 0): unknown {
  const def = shape._zod.def as unknown as { type: string } & Record<string, never>;
  const inside = (inner: z.core.$ZodType) => filledIn(inner, depth + 1);
  if (depth > DEPTH_MAX) return undefined;
  switch (def.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries<z.core.$ZodType>(def.shape!).map(([key, inner]) => [key, inside(inner)]),
      );
    case 'array':
      return [inside(def.element!)];
    case 'record':
      return { any: inside(def.valueType!) };
    case 'optional':
    case 'nullable':
    case 'default':
      return inside(def.innerType!);
    case 'lazy':
      return inside((def.getter as unknown as () => z.core.$ZodType)());
    case 'pipe':
      return inside(def.in!);
    case 'union':
      return inside(def.options![0]!);
    case 'enum':
      return Object.values(def.entries!)[0];
    case 'boolean':
      return true;
    case 'number':
      return 1;
    default:
      return 'text';
  }
}
