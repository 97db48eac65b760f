/** Reads and writes a setting of the environment whole. */
import { type QueryClient, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { api } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { getQuery, invalidate } from '../../client/queries.ts';

export type SettingName = components['schemas']['SettingResponse']['key'];
type SettingRecord = components['schemas']['SettingResponse'];

/** The value has the shape of its key (docs/rules/records.md, "Settings"). */
export function useSetting<Value extends object>(key: SettingName): UseQueryResult<Value> {
  return useQuery({
    ...getQuery('/settings/{key}', { path: { key } }),
    select: (setting: unknown) => (setting as SettingRecord).value as Value,
  }) as UseQueryResult<Value>;
}

/** Sent fields change; null restores the default of a field. */
export async function saveSetting(queries: QueryClient, key: SettingName, value: object): Promise<void> {
  await api.PUT('/settings/{key}', { params: { path: { key } }, body: { value: value as Record<string, unknown> } });
  await invalidate(queries, '/settings');
}
