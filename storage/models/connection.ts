/** Table `connections`. The credentials are in it sealed where there is a key for that (sealing.ts); no answer has them. */
import { type Connection, connectionShape } from '../../core/connection/record.ts';
import { ScopedModel } from './model.ts';

export interface ConnectionModel extends Connection {}

export class ConnectionModel extends ScopedModel {
  static override tableName = 'connections';
  static override recordName = 'connection';
  static override record = connectionShape;
  /** JSON; empty without credentials. */
  declare secret: string;
}
