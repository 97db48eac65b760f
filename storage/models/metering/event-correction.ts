/** Table `event_corrections`, which the list of corrections reads in pages; storage/progress/corrections.ts writes it. */
import { z } from 'zod';
import {
  CORRECTION_ACTIONS,
  CORRECTION_STATES,
  type CorrectionAction,
  type CorrectionState,
} from '../../../core/metering/correction.ts';
import { ScopedModel } from '../foundation/model.ts';

export class EventCorrectionModel extends ScopedModel {
  static override tableName = 'event_corrections';
  static override recordName = 'correction';
  /** A correction itself records its author, time and reason. */
  static override isAudited = false;
  static override record = z.object({ action: z.enum(CORRECTION_ACTIONS), state: z.enum(CORRECTION_STATES) });
  declare event_id: string;
  declare action: CorrectionAction;
  declare reason: string;
  declare requested_by: string;
  declare requested_at: string;
  declare state: CorrectionState;
  declare applied_at: string | null;
}
