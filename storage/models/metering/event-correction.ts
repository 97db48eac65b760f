/** Table `event_corrections`, for reading in pages; storage/progress/corrections.ts writes it. */
import { z } from 'zod';
import { ScopedModel } from '../foundation/model.ts';

export const CORRECTION_ACTIONS = ['void', 'replace'] as const;
export const CORRECTION_STATES = ['requested', 'applied', 'unknown_event'] as const;

export class EventCorrectionModel extends ScopedModel {
  static override tableName = 'event_corrections';
  static override recordName = 'correction';
  /** A correction is a record of its own author, time and reason. */
  static override isAudited = false;
  static override record = z.object({ action: z.enum(CORRECTION_ACTIONS), state: z.enum(CORRECTION_STATES) });
  declare event_id: string;
  declare action: (typeof CORRECTION_ACTIONS)[number];
  declare reason: string;
  declare requested_by: string;
  declare requested_at: string;
  declare state: (typeof CORRECTION_STATES)[number];
  declare applied_at: string | null;
}
