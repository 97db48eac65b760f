/** GET /search: one search over all kinds of records. */
import { z } from 'zod';
import { searchAll } from '../../../actions/reporting/search/search.ts';
import { canRead } from '../../../core/foundation/access/role.ts';
import { anyCase, toEnumValues, wholeNumber } from '../../../core/foundation/record.ts';
import { MATCHED_FIELDS, SEARCH_KINDS } from '../../../core/platform/search/term.ts';
import { commaSeparatedList } from '../../http/list.ts';
import { type Route, route } from '../../http/route.ts';

const KINDS = toEnumValues(SEARCH_KINDS);
const TEXT_MAX = 200;

const SearchQueryShape = z.object({
  q: z
    .string()
    .trim()
    .min(1, { error: 'must not be empty' })
    .max(TEXT_MAX, { error: `must not be longer than ${TEXT_MAX} characters` })
    .meta({ description: `Text to search, 1 to ${TEXT_MAX} characters, case-insensitive.`, example: 'acme' }),
  kinds: commaSeparatedList(anyCase(KINDS)).optional().meta({ description: 'Kinds of records. Default: all.' }),
  limit: wholeNumber
    .pipe(z.int().min(1).max(50))
    .default(20)
    .meta({ description: 'Maximum number of results, 1 to 50. Default: 20.' }),
});

const SearchItem = z
  .object({
    kind: z.enum(KINDS).meta({ description: 'Kind of the record.' }),
    id: z.string().meta({ description: 'Id of the record; of an event, its id as sent.' }),
    title: z.string().meta({ description: 'Name or number of the record, or else its id.' }),
    subtitle: z.string().nullable().meta({ description: 'Key of the record, or name of its customer; null if none.' }),
    status: z.string().nullable().meta({ description: 'Status of the record; null for an event.' }),
    matched: z.enum(MATCHED_FIELDS).meta({
      description:
        'Field that matches the text. Coupon codes count as lookup_key, ids at payment providers as external_id.',
    }),
    customer_id: z.string().nullable().meta({ description: 'Customer of the record; null if it has none.' }),
  })
  .meta({ id: 'SearchItem' });

export const SearchAnswer = z
  .object({ items: z.array(SearchItem).meta({ description: 'Results, the best first.' }) })
  .meta({ id: 'SearchResponse' });

export const searchRoutes: Route[] = [
  route({
    method: 'get',
    path: '/search',
    operation_id: 'search',
    summary: 'Search all records',
    description:
      'Finds records by id, number, email address, external id, key or name, and events by their whole id. Equal fields ' +
      'come first, then fields that begin with the text, then names that contain it. Names of customers are searched ' +
      'inside only for a text with three letters or digits in a row. Kinds that the caller may not read are omitted: ' +
      '[search](/docs/rules/records.md#search).',
    tag: 'Search',
    access: 'event:read',
    query: SearchQueryShape,
    success: 200,
    answer: SearchAnswer,
    handle: async ({ query: { q: text, kinds = KINDS, limit } }, { services, scope, principal }) => {
      const readable = new Set(KINDS.filter((kind) => canRead(principal, SEARCH_KINDS[kind])));
      return { items: await searchAll(services, scope, { readable, text, kinds, limit }) };
    },
  }),
];
