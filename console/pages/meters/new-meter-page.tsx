import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function NewMeterPage(): ReactNode {
  return <PageHead title="NewMeterPage" />;
}
