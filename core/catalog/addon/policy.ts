/**
 * Treatment of add-ons in a plan change (docs/rules/subscriptions.md, "Plan changes"). Add-ons are carried over, unless the request drops
 * some or all of them.
 */
import { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import { anyCase, orNull } from '../../foundation/record.ts';
import type { AddonAssociation } from './record.ts';

export const ENTITY_BEHAVIOURS = ['carry', 'drop'] as const;
export type EntityBehaviour = (typeof ENTITY_BEHAVIOURS)[number];

export const addonPolicyShape = z.object({
  default_behaviour: orNull(anyCase(ENTITY_BEHAVIOURS)).meta({
    description: 'Treatment of all add-ons: carry retains them, drop detaches them with the change. Default: carry.',
  }),
  overrides: orNull(z.record(z.string(), anyCase(ENTITY_BEHAVIOURS))).meta({
    description: 'Treatment of single add-ons, by the id of the add-on or of one of its associations.',
  }),
});
export type AddonPolicy = z.output<typeof addonPolicyShape>;

type AttachedAddon = Pick<AddonAssociation, 'id' | 'addon_id'>;

/** Throws if an override names an add-on that is not attached. Ignoring it would suggest that the add-on was dropped. */
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
