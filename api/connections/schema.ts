/** Requests and answers of connections. */
import { z } from 'zod';
import { connectionSecrets, connectionShape } from '../../core/connection/record.ts';
import { orNull } from '../../core/record.ts';
import { BASE_COLUMNS, type ListGrammar, listShape, matchAny } from '../http/list.ts';

const { name, provider_type, metadata, sync_config } = connectionShape.shape;
const encrypted_secret_data = orNull(connectionSecrets).meta({
  description: 'The credentials, of one provider. They are kept sealed, and in no answer.',
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
    sync_config: z.null().optional().meta({ description: 'Nothing is synchronised yet: null.' }),
    encrypted_secret_data: connectionSecrets
      .nullish()
      .meta({ description: 'New credentials in the place of those before; they stay when absent.' }),
  })
  .meta({ id: 'UpdateConnectionRequest', example: { name: 'Warehouse of finance' } });

export const ConnectionAnswer = connectionShape.meta({ id: 'ConnectionResponse' });
export const ConnectionListAnswer = z
  .object({
    connections: z.array(ConnectionAnswer).meta({ description: 'A page of those that meet the conditions.' }),
    total: z.int().meta({ description: 'How many meet the conditions in all.' }),
    limit: z.int().meta({ description: 'How many a page has at most.' }),
    offset: z.int().meta({ description: 'How many were left out before the page.' }),
  })
  .meta({ id: 'ListConnectionsResponse' });

export const ConnectionFilter = listShape({
  connection_ids: matchAny('connections'),
  provider_type: provider_type.optional().meta({ description: 'Of this provider.' }),
}).meta({ id: 'ConnectionFilter', example: { provider_type: 's3' } });
export type ConnectionFilter = z.output<typeof ConnectionFilter>;

export const connectionGrammar: ListGrammar = {
  columns: { ...BASE_COLUMNS, name: 'string', provider_type: 'string' },
};
