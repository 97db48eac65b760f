/** Table `connections`. Its credentials are sealed if the settings have a key (foundation/secrets/sealing.ts); no answer contains them. */
import { type Connection, connectionShape } from '../../../core/platform/connection/record.ts';
import { ScopedModel } from './model.ts';

export interface ConnectionModel extends Connection {}

export class ConnectionModel extends ScopedModel {
  static override tableName = 'connections';
  static override recordName = 'connection';
  static override record = connectionShape;
  /** Sealed JSON of the credentials by provider; empty without credentials. */
  declare secret: string;
  /** Sealed tokens of a provider with OAuth; empty for others. */
  declare oauth_tokens: string;
  /** Process that refreshes the tokens, and the end of its lease (token-lease.ts); null if no process refreshes them. */
  declare refreshing_by: string | null;
  declare refreshing_until: string | null;
  /**
   * Whether the connection is to a tenant's own account at the provider. An environment has at most one published
   * connection to each such provider.
   */
  declare has_account: boolean;
  /** Nothing is pushed or read before this instant, because the provider failed; null if it did not. */
  declare paused_until: string | null;
  /** Number of pauses since the last success. */
  declare pause_count: number;
}
