/** The mixed load of a company: the number of requests of each kind in a hundred. */
import type { Due } from './due-requests.ts';
import { REQUESTS, type RequestsWorld } from './requests-world.ts';
import { seeded } from './workload.ts';

export const MIX = {
  'bulk of 20': 15,
  event: 20,
  usage: 25,
  customers: 15,
  preview: 12,
  'new customer': 8,
  'new subscription': 5,
} as const;

export type MixedKind = keyof typeof MIX;

const KINDS = Object.entries(MIX).flatMap(([kind, share]) => Array<MixedKind>(share).fill(kind as MixedKind));

/** Returns the next request of the mixed load. */
export function mixRequests(world: RequestsWorld, seed: number): () => Due<MixedKind> {
  const random = seeded(seed);
  return () => {
    const kind = KINDS[Math.floor(random() * KINDS.length)]!;
    return { kind, request: REQUESTS[kind]!(world, random) };
  };
}
