import { z } from 'zod';
import { notAllowed } from '../../core/foundation/error.ts';
import { orNull } from '../../core/foundation/record.ts';
import { hasPathStyle } from '../../core/platform/scheduled-task/record.ts';
import type { Provider } from '../provider.ts';
import { createS3Destination } from './export-destination.ts';

const FIRST_REGION = 'us-east-1';

const secretText = z.string().min(1).max(4_000);

const secrets = z.object({
  aws_access_key_id: secretText.meta({ description: 'Access key id.' }),
  aws_secret_access_key: secretText.meta({ description: 'Secret access key; it is never shown.' }),
  aws_session_token: orNull(secretText).meta({
    description: 'Session token of temporary credentials; null for permanent credentials.',
  }),
});

export const s3: Provider = {
  export_destination: {
    is_shared: false,
    secrets,
    create({ id, job_config, settings, openSecrets }) {
      const opened = openSecrets();
      if (opened === null || job_config.bucket === null) throw notAllowed(`the connection ${id} is not one to S3`);
      const credentials = secrets.parse(opened);
      return createS3Destination({
        bucket: job_config.bucket,
        region: job_config.region ?? FIRST_REGION,
        endpoint: job_config.endpoint_url,
        path_style: hasPathStyle(job_config),
        encryption: job_config.encryption,
        credentials: {
          access_key_id: credentials.aws_access_key_id,
          secret_access_key: credentials.aws_secret_access_key,
          session_token: credentials.aws_session_token,
        },
        allow_private_addresses: settings.EXPORT_ALLOW_PRIVATE_ADDRESSES,
      });
    },
  },
};
