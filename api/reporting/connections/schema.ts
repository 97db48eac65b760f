/** Requests and answers of connections. */
import { z } from 'zod';
import { orNull } from '../../../core/foundation/record.ts';
import { connectionSecrets, connectionShape } from '../../../core/platform/connection/record.ts';
import { BASE_COLUMNS, type ListGrammar, listShape, matchAny } from '../../http/list.ts';

const { name, provider_type, metadata, sync_config } = connectionShape.shape;
const encrypted_secret_data = orNull(connectionSecrets).meta({
  description: 'Credentials of one provider. They are stored encrypted and never returned.',
});

export const CreateConnection = z.object({ name, provider_type, encrypted_secret_data, metadata, sync_config }).meta({
  id: 'CreateConnectionRequest',
  example: {
    name: 'Warehouse',
    provider_type: 's3',
    encrypted_secret_data: {
      s3: { aws_access_key_id: 'AKIAIOSFODNN7EXAMPLE', aws_secret_access_key: 'the secret of this key' },
    },
  },
});

export const UpdateConnection = z
  .object({
    name: name.optional(),
    metadata: metadata.unwrap().optional(),
    sync_config: z.null().optional().meta({ description: 'Not supported yet: must be null.' }),
    encrypted_secret_data: connectionSecrets
      .nullish()
      .meta({ description: 'New credentials, which replace the previous ones. Default: unchanged.' }),
  })
  .meta({ id: 'UpdateConnectionRequest', example: { name: 'Warehouse of finance' } });

export const ConnectionAnswer = connectionShape.meta({ id: 'ConnectionResponse' });
export const ConnectionListAnswer = z
  .object({
    connections: z.array(ConnectionAnswer).meta({ description: 'Page of the connections that meet the conditions.' }),
    total: z.int().meta({ description: 'Number of connections that meet the conditions.' }),
    limit: z.int().meta({ description: 'Maximum number of connections per page.' }),
    offset: z.int().meta({ description: 'Number of connections skipped before the page.' }),
  })
  .meta({ id: 'ListConnectionsResponse' });

export const ConnectionFilter = listShape({
  connection_ids: matchAny('connections'),
  provider_type: provider_type.optional().meta({ description: 'Provider of the connection.' }),
}).meta({ id: 'ConnectionFilter', example: { provider_type: 's3' } });
export type ConnectionFilter = z.output<typeof ConnectionFilter>;

export const connectionGrammar: ListGrammar = {
  columns: { ...BASE_COLUMNS, name: 'string', provider_type: 'string' },
};
