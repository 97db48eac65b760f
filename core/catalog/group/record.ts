/** A group of prices or features under one key (docs/rules/records.md, "Groups"). */
import { z } from 'zod';
import { invalid, notFound } from '../../foundation/error.ts';
import { anyCase, baseFields, metadata, requiredKey, requiredName } from '../../foundation/record.ts';

const GROUP_ENTITY_TYPES = ['price', 'feature'] as const;
export const groupEntityType = anyCase(GROUP_ENTITY_TYPES);

/** Fields of a request that creates a group, as they are stored. */
export const groupFields = z.object({
  name: requiredName.meta({ description: 'Display name of the group.' }),
  entity_type: groupEntityType.meta({ description: 'Type of the members: price or feature.' }),
  lookup_key: requiredKey.meta({ description: 'Your own key of the group; unique among published groups.' }),
  metadata,
});

export const groupShape = groupFields.extend({ id: z.string(), ...baseFields });
export type Group = z.output<typeof groupShape>;

/** A record can only join a published group of its own type. */
export function checkMembership(group: Group, entity_type: Group['entity_type']): void {
  if (group.status !== 'published') throw notFound('group', group.id);
  if (group.entity_type !== entity_type)
    throw invalid('group_id', `group ${group.id} is one of ${group.entity_type}s, not of ${entity_type}s`);
}
