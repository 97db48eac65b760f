/** A group: prices, or features, that belong together under one key (docs/rules/records.md, "Groups"). */
import { z } from 'zod';
import { invalid, notFound } from '../error.ts';
import { anyCase, baseFields, metadata, requiredKey, requiredName } from '../record.ts';

const GROUP_ENTITY_TYPES = ['price', 'feature'] as const;
export const groupEntityType = anyCase(GROUP_ENTITY_TYPES);

/** What a client states of a new group, as it is stored. */
export const groupFields = z.object({
  name: requiredName.meta({ description: 'What people call it.' }),
  entity_type: groupEntityType.meta({ description: 'What its members are: price or feature.' }),
  lookup_key: requiredKey.meta({ description: 'A name of your own, of one published group.' }),
  metadata,
});

export const groupShape = groupFields.extend({ id: z.string(), ...baseFields });
export type Group = z.output<typeof groupShape>;

/** A record joins a published group of its own kind. */
export function checkMembership(group: Group, entity_type: Group['entity_type']): void {
  if (group.status !== 'published') throw notFound('group', group.id);
  if (group.entity_type !== entity_type)
    throw invalid('group_id', `group ${group.id} is one of ${group.entity_type}s, not of ${entity_type}s`);
}
