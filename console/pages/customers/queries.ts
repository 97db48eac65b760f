/** The list of customers. */
import type { GetParams } from '../../client/queries.ts';

/** Parameters of the list without a search text. */
export function getListParams(view: 'archived' | undefined): GetParams<'/customers'> {
  return { query: view ? { status: view } : {} };
}
