/**
 * Serializes the contribution of an event to a usage line into the bytes that are hashed (docs/proof.md, "A leaf"). Netstrings give any two
 * leaves different texts, and are easy to write in any language.
 */
import type { Contribution } from '../../metering/contribution.ts';
import { exactText } from '../../metering/exact.ts';

type Leaf = {
  readonly event_id: string;
  readonly timestamp_us: number;
  readonly external_customer_id: string;
  /** Canonical text of the counted value: a decimal, or a distinct text. It is '' if the event itself is counted. */
  readonly value: string;
  readonly group: string;
};

export function toLeaf({ event, value, identity, group_key }: Contribution): Leaf {
  const { event_id, timestamp_us, external_customer_id } = event;
  const text = value === undefined ? (identity ?? '') : exactText(value);
  return { event_id, timestamp_us, external_customer_id, value: text, group: group_key };
}

export function formatLeaf({ event_id, timestamp_us, external_customer_id, value, group }: Leaf): string {
  return [event_id, String(timestamp_us), external_customer_id, value, group].map(formatNetstring).join('');
}

function formatNetstring(text: string): string {
  return `${Buffer.byteLength(text)}:${text},`;
}
