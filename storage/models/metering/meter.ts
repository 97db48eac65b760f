import { type Meter, meterShape } from '../../../core/metering/meter/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface MeterModel extends Meter {}

export class MeterModel extends ScopedModel {
  static override tableName = 'meters';
  static override recordName = 'meter';
  static override record = meterShape;
  /** State of the meter: `backfilling` until earlier events are counted, then `live`. */
  declare state: 'backfilling' | 'live';
  /** Increases with each change to the meter's counting rules. */
  declare version: number;
}
