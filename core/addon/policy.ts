/**
 * What becomes of the add-ons of a subscription that gets another plan (docs/rules/subscriptions.md, "Plan changes"): they are
 * carried over, unless the request has some or all of them dropped.
 */
import { z } from 'zod';
import { invalid } from '../error.ts';
import { anyCase, orNull } from '../record.ts';
import type { AddonAssociation } from './record.ts';

export const ENTITY_BEHAVIOURS = ['carry', 'drop'] as const;
export type EntityBehaviour = (typeof ENTITY_BEHAVIOURS)[number];

export const addonPolicyShape = z.object({
  default_behaviour: orNull(anyCase(ENTITY_BEHAVIOURS)).meta({
    description: 'carry, also when absent: they stay. drop: they are detached by the change.',
  }),
  overrides: orNull(z.record(z.string(), anyCase(ENTITY_BEHAVIOURS))).meta({
    description: 'Of single ones, by the id of the add-on, or of one association of it.',
  }),
});
export type AddonPolicy = z.output<typeof addonPolicyShape>;

type AttachedAddon = Pick<AddonAssociation, 'id' | 'addon_id'>;

/** An override of what is not held is refused: nobody is to believe that it was dropped. */
export function checkPolicy(attached: readonly AttachedAddon[], policy: AddonPolicy | null | undefined): void {
  for (const key of Object.keys(policy?.overrides ?? {})) {
    if (!attached.some(({ id, addon_id }) => id === key || addon_id === key))
      throw invalid(`entity_policies.addons.overrides.${key}`, `the subscription has no add-on ${key}`);
  }
}

export function deriveAddonBehaviour(
  { id, addon_id }: AttachedAddon,
  policy: AddonPolicy | null | undefined,
): EntityBehaviour {
  const overrides = policy?.overrides ?? {};
  return overrides[id] ?? overrides[addon_id] ?? policy?.default_behaviour ?? 'carry';
}
