// Checks dashboards against the types that Grafana publishes for them
// (@grafana/schema), by the TypeScript compiler: each property must exist there
// and have a value of its type.  Prints a line for each fault.
//
//     node t/web/dashboard.mjs FILE...

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const here = dirname(fileURLToPath(import.meta.url));
const files = process.argv.slice(2);

// JSON has the strings of an enum, which TypeScript takes for another type.
// What a panel shows, and how, has a type for each kind of panel.  The queries
// of Prometheus have none there.

const panels = '@grafana/schema/dist/esm/raw/composable';
const types = `
import type { Dashboard, Panel, DataQuery, FieldConfig,
    FieldConfigSource, VariableModel } from '@grafana/schema';
import type * as stat from
    '${panels}/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as timeseries from
    '${panels}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

type Plain<T> = T extends string ? \`\${T}\`
    : T extends number | boolean | null | undefined ? T
    : { [K in keyof T]: Plain<T[K]> };
type Some<T> = T extends (infer U)[] ? Some<U>[]
    : T extends object ? { [K in keyof T]?: Some<T[K]> } : T;

type Query = DataQuery & { expr: string, legendFormat?: string };
type Of<Kind, Options, Custom> = Omit<Panel,
    'type' | 'options' | 'fieldConfig' | 'targets'> & {
    type: Kind,
    options: Some<Options>,
    fieldConfig: Omit<FieldConfigSource, 'defaults'> & {
        defaults: Omit<FieldConfig, 'custom'> & { custom?: Some<Custom> },
    },
    targets: Query[],
};
type Board = Omit<Dashboard, 'panels' | 'templating'> & {
    panels: (Of<'stat', stat.Options, {}>
        | Of<'timeseries', timeseries.Options, timeseries.FieldConfig>)[],
    templating: { list: VariableModel[] },
};

export type Json = Plain<Board>;
`;

// what the compiler reads here: the types, and a source for each file

const sources = { [join(here, 'types.check.ts')]: types };
const head = "import type { Json } from './types.check';\n"
    + 'export const board: Json =\n';

files.forEach((file, n) => {
    sources[join(here, `${n}.check.ts`)] = head + readFileSync(file, 'utf8');
});

const options = {
    strict: true, noEmit: true, skipLibCheck: true, types: [],
    target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
};
const host = ts.createCompilerHost(options);
const { getSourceFile, fileExists, readFile } = host;

host.fileExists = path => path in sources || fileExists(path);
host.readFile = path => sources[path] ?? readFile(path);
host.getSourceFile = (path, ...rest) => path in sources
    ? ts.createSourceFile(path, sources[path], ...rest)
    : getSourceFile(path, ...rest);

const program = ts.createProgram(Object.keys(sources), options, host);

for (const fault of ts.getPreEmitDiagnostics(program)) {
    const file = fault.file?.fileName ?? '';
    const at = files[file.match(/(\d+)\.check\.ts$/)?.[1]] ?? file;
    const line = fault.file
        ? fault.file.getLineAndCharacterOfPosition(fault.start).line : 0;
    const text = ts.flattenDiagnosticMessageText(fault.messageText, '\n    ');

    console.log(`${at}:${line - 1}: ${text}`);
    process.exitCode = 1;
}
