/** Table `system_events`. */
import { type SystemEvent, systemEventShape } from '../../core/system-event/record.ts';
import { ScopedModel } from './model.ts';

export interface SystemEventModel extends SystemEvent {}

export class SystemEventModel extends ScopedModel {
  static override tableName = 'system_events';
  static override recordName = 'system event';
  /** It tells of a change itself. */
  static override isAudited = false as const;
  static override record = systemEventShape;
  /** The order of what happened to one record. */
  declare sequence: string;
}
