/** Table `meters`. */
import { type Meter, meterShape } from '../../core/meter/record.ts';
import { ScopedModel } from './model.ts';

export interface MeterModel extends Meter {}

export class MeterModel extends ScopedModel {
  static override tableName = 'meters';
  static override recordName = 'meter';
  static override record = meterShape;
  /** `backfilling` until the events that came before the meter are counted. */
  declare state: 'backfilling' | 'live';
  /** Grows with each change of what the meter counts. */
  declare version: number;
}
