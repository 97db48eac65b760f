/**
 * A reservation: units of a feature, or credits of a wallet, that are set apart for a customer until they are used, given back, or
 * their time is over (docs/rules/reservations.md).
 */
import { z } from 'zod';
import { baseFields, decimalText, freeMap, metadata, optionalKey, timestampText } from '../record.ts';
import { REASONS } from './room.ts';

/** `held` is open; a reservation that has ended is one of the others. */
export const RESERVATION_STATUSES = ['held', 'committed', 'released', 'expired'] as const;
/** What becomes of what nobody has committed or released in time. */
export const ON_EXPIRY = ['release', 'charge'] as const;
export const ENDED_BY = ['commit', 'release', 'expiry'] as const;

export const reservationShape = z.object({
  id: z.string(),
  customer_id: z.string().meta({ description: 'Who may use it.' }),
  feature_id: z.string().nullable().meta({ description: 'The feature of which units are held; null of credits.' }),
  wallet_id: z.string().nullable().meta({ description: 'The wallet of which credits are held; null of a feature.' }),
  quantity: decimalText.meta({ description: 'How many units, or credits, are held.' }),
  committed_quantity: decimalText
    .nullable()
    .meta({ description: 'How many were used, as was committed; null before that.' }),
  reservation_status: z
    .enum(RESERVATION_STATUSES)
    .meta({ description: 'held until it is committed, released, or expires.' }),
  reason: z.enum(REASONS).meta({ description: 'Why it could be held.' }),
  on_expiry: z.enum(ON_EXPIRY).meta({ description: 'What becomes of it when it expires: nothing, or it is charged.' }),
  expires_at: timestampText.meta({ description: 'From then on it holds nothing any more.' }),
  ended_at: timestampText.nullable().meta({ description: 'When it was committed or released, or expired.' }),
  ended_by: z.enum(ENDED_BY).nullable().meta({ description: 'What ended it; null while it is held.' }),
  properties: freeMap.nullable().meta({ description: 'Properties of the event that it becomes.' }),
  event_at: timestampText.nullable().meta({ description: 'The timestamp of the event that it became.' }),
  wallet_transaction_id: z.string().nullable().meta({ description: 'The debit that it became; null of a feature.' }),
  metadata,
  idempotency_key: optionalKey.meta({ description: 'One key is one reservation.' }),
  ...baseFields,
});

/** With what is kept of its events, which is nobody's to read. */
export type Reservation = z.output<typeof reservationShape> & {
  readonly subject_id: string;
  readonly event_text: string | null;
  readonly event_count: number;
  readonly is_sent: boolean;
};
