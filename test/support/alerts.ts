/** Settings of alerts, and the alerts that they raised. */
import type { World } from './world.ts';

/** Settings of an alert that is raised above each of these levels: `above({ critical: '100', info: '10' })`. */
export const above = (levels: Record<string, string>) => ({
  alert_enabled: true,
  ...Object.fromEntries(Object.entries(levels).map(([level, threshold]) => [level, { threshold, condition: 'above' }])),
});

/** Lists the alerts of a record as `subscription_spend in_alarm 60`, oldest first. */
export async function alertLog(world: World, entity_id: string): Promise<string[]> {
  const { items } = (
    await world.api.request('POST', '/alerts/search', { body: { entity_id, sort: 'id', order: 'asc' } })
  ).body;
  return items.map(
    ({ alert_type, alert_status, alert_info }) => `${alert_type} ${alert_status} ${Number(alert_info.value_at_time)}`,
  );
}

/** Lists the events whose names begin with a prefix, oldest first. */
export async function listEvents(world: World, prefix: string) {
  const { items } = await world.get('/webhooks/events?limit=1000&order=asc&sort=id');
  return items.filter(({ event_name }) => event_name.startsWith(prefix)).map(({ payload }) => payload);
}
