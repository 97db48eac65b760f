import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function MeterPage(): ReactNode {
  return <PageHead title="MeterPage" />;
}
