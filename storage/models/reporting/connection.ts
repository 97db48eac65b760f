/** Table `connections`. Its credentials are sealed if the settings have a key (foundation/secrets/sealing.ts); no answer contains them. */
import { type Connection, connectionShape } from '../../../core/platform/connection/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface ConnectionModel extends Connection {}

export class ConnectionModel extends ScopedModel {
  static override tableName = 'connections';
  static override recordName = 'connection';
  static override record = connectionShape;
  /** JSON; empty without credentials. */
  declare secret: string;
}
